"""What the system and the world of a study settle, and what remains to sweep.

What a system or a world has one value of is one level of a factor. Files of earlier versions have those values at the
top, and are read as they are. Over a recording a study sweeps what a replay may have otherwise than it was recorded:
alternatives, whether the deadline is propagated, decision timeouts, second budgets and retries. What is left out is as
it was recorded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.replays import require_replayable, without_live_endpoints
from docmind_lab.experiments.flat_options import nouns_of
from docmind_lab.experiments.sweeps.factors import FIELDS, Factors, StudyFields, designed_factors, levels_in
from docmind_lab.experiments.system_options import Command, DocMind, LabSystem, OwnSystem, System, system_of_kind
from docmind_lab.experiments.world_options import AnyWorld, Live, Replay, World

_NOT_OF_A_GRAPH: Final = ("workload", "router_injection", "node_mode", "retries", "adoption")

SETTLED_FACTORS: Final = (
    "router_injection",
    "latency_profile",
    "fault",
    "stops_on_disconnect",
    "server_behaviour",
    "adoption",
    "node_mode",
    "workload",
    "clock",
)
"""Factors that a recording has settled."""

_SETTLED_FIELDS: Final = ("seed", "horizon_factor", "side_by_side")
_NOT_OF_A_STUDY: Final = {
    "enforced": "a study has no such option",
    "before_sending": "a study asks nobody before it sends",
    **dict.fromkeys(("record", "record_text", "max_requests", "max_tokens"), "a study has no caps and no recording"),
}


def fields_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a study as the fields of a design, with a system, a world and factors.

    Raises: ConfigurationError for a table that cannot be used, and for values that do not go together.
    """
    options = {name: value for name, value in values.items() if name not in ("system", "world")}
    nouns: dict[str, Any] = {}
    for name, kinds in (("system", System), ("world", World | Replay)):
        table = values.get(name, {})
        if isinstance(table, kinds):
            nouns[name] = table
        elif isinstance(table, Mapping):
            options |= {"system" if option == "name" else option: value for option, value in table.items()}
        else:
            raise ConfigurationError(f"{name}: must be a table, such as [{name}], not {table!r}")
    fields = nouns_of(options) | nouns
    _require_of_a_study(fields["system"], fields["world"])
    return fields | _with_levels(fields)


def _require_of_a_study(system: System, world: AnyWorld) -> None:
    if isinstance(system, Command):
        raise ConfigurationError("command: a study runs in virtual time, and a program in real time; use compare")
    for noun in (system, world):
        for field in dataclasses.fields(noun):
            if field.name in _NOT_OF_A_STUDY and getattr(noun, field.name) != field.default:
                raise ConfigurationError(f"{field.name}: {_NOT_OF_A_STUDY[field.name]}; use compare")
    if isinstance(system, OwnSystem) and isinstance(world, Live):
        raise ConfigurationError("services: a study sends nothing to a graph's own endpoints; use compare")


def _with_levels(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the system and the world without what is varied, and the factors with it."""
    factors = designed_factors(fields.get("factors", {}))
    system, of_system = levels_in(fields["system"])
    world, of_world = levels_in(fields["world"])
    levels = of_system | of_world
    if getattr(system, "kind", DocMind.kind) != DocMind.kind:
        levels["workload"] = system.kind
    if isinstance(system, OwnSystem):
        for name in _NOT_OF_A_GRAPH:
            if name in factors:
                raise ConfigurationError(
                    f"factors.{name}: it is of the lab's own systems, and a graph of your own has none; leave it out"
                )
    for name in levels.keys() & factors.keys():
        raise ConfigurationError(f"{name}: it is a factor and an option of the system or the world; leave one out")
    if isinstance(world, Replay):
        levels.pop("workload", None)  # the recording names it too
        named = [f"factors.{name}" for name in SETTLED_FACTORS if name in {**levels, **factors} and name != "workload"]
        _require_not_settled(world, [*named, *(name for name in _SETTLED_FIELDS if name in fields)])
    made = {"system": system, "world": world, "factors": {**levels, **factors}}
    budget = fields["system"].budget
    if "price" not in fields and budget is not None and budget.price is not None:
        made["price"] = budget.price.written
    return made


def _require_not_settled(world: Replay, names: Sequence[str]) -> None:
    if names:
        raise ConfigurationError(
            f"{', '.join(names)}: the recording in {world.folder} has settled it; leave it out of a study with replay, "
            "which sweeps alternative, deadline_propagation, decision_timeout_s, retries and budget_*"
        )


def settled_by_recording(study: StudyFields) -> dict[str, Any]:
    """Return the fields of a study that its recording fixes or has a default for.

    Raises: ConfigurationError naming a field that is settled and was given; RecordError for a folder without one.
    """
    design = study.recording.design
    factors = {name: getattr(study.factors, name) for name in study.factors.model_fields_set}
    system = study.system
    if factors.get("workload") == (design["workload"],):
        # Another's workload is imported only if the study's author names it too.
        system = _of_kind(system, factors.pop("workload")[0])
    _require_not_settled(study.world, ["factors.workload"] if "workload" in factors else [])
    fields: dict[str, Any] = {name: design[name] for name in _SETTLED_FIELDS}
    own = study.own  # before the copy, which takes it along: a graph that a function makes has a new name each time
    recorded = study.model_copy(update={"system": system}).replayed()
    require_replayable(recorded, study.recording, Path(study.world.folder), without_live_endpoints(Settings()))
    fields["system"] = system if own is not None else _of_kind(system, recorded.workload)
    if "repeats" not in study.model_fields_set:
        fields["repeats"] = recorded.runs
    known = {"alternative": list(recorded.alternatives), "decision_timeout_s": recorded.decision_timeout_s}
    if "price" not in study.model_fields_set and not FIELDS.keys() & factors.keys():
        # As a comparison that replays: others take the place of all that were recorded.
        limits = {name: recorded.budget.limit(kind) for name, kind in FIELDS.items()}
        known |= {name: limit for name, limit in limits.items() if limit is not None}
        if recorded.budget.price is not None:
            fields["price"] = recorded.budget.price.written
    return fields | {"factors": Factors.model_validate(known | factors)}


def _of_kind(system: System, kind: str) -> LabSystem:
    """Return the lab's system of a workload kind, with the documents and questions of another."""
    values = {
        field.name: getattr(system, field.name)
        for field in dataclasses.fields(system)
        if field.name in ("documents", "questions") and getattr(system, field.name) != field.default
    }
    made: LabSystem = system_of_kind(kind, **values)
    return made
