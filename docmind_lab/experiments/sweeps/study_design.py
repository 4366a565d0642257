"""The design of a study: factors × levels × repeats, from Python or TOML, and the resulting combinations.

    StudyDesign.of({"factors": {"alternatives": ["A", "B"], "decision_timeout_s": [5, 10]}, "repeats": 20})
    StudyDesign.read("study.toml")

    seed = 7                            # keys questions, latencies, faults; each repeat has a seed of its own
    repeats = 20                        # questions asked in each combination

    [system]                            # what is under the deadline, as `compare` takes it
    graph = "my_app:graph"
    inputs = "inputs.jsonl"

    [world]                             # what it meets
    latencies = "typical"

    [factors]                           # a level, or a list of them
    alternatives = ["unguarded", "A", "B"]
    decision_timeout_s = [5, 10, 20]
    faults = ["none", "hang:planner"]

All combinations of one repeat have one seed, so they meet the same question, latencies and faults (common random
numbers).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ValidationError

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.text import level
from docmind_lab.experiments.comparison.comparison import RUN_SEEDS, alternatives_json, short_label, study_id_of
from docmind_lab.experiments.sweeps.factors import (
    StudyFields,
    alternatives_of,
    designed_factors,
    levels_in,
    profile_of,
)
from docmind_lab.experiments.sweeps.planning import SweepPlan, plan_of
from docmind_lab.experiments.world_options import AnyWorld, Live, Replay, World, nouns_of
from docmind_lab.systems.base.workload_kind import shown_name
from docmind_lab.systems.system_catalogue import Command, DocMind, OwnSystem, System

MOST_RUNS = 1_000_000

_NOT_OF_A_GRAPH: Final = ("workload", "router_injection", "node_mode", "retries", "adoption")

_NOT_OF_A_STUDY: Final = {
    "enforced": "a study has no such option",
    "before_sending": "a study asks nobody before it sends",
    **dict.fromkeys(("record", "record_text", "max_requests", "max_tokens"), "a study has no caps and no recording"),
}


class StudyDesign(ShownAsCode, StudyFields):
    """Everything that determines a study.

    Args:
        name: Of the study, in its tables.
        seed: Keys the questions, latencies and faults.
        repeats: Questions asked in each combination.
        system: What is under the deadline, as `compare` takes it.
        world: What it meets, as `compare` takes it.
        horizon_factor: How long a run is observed, in decision timeouts.
        side_by_side: Runs under way at once on the wall clock.
        factors: What is varied: name → levels.

    Raises:
        ConfigurationError: A field does not fit; from `of` and `read`, which say more than the constructor.
    """

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Build a design from a mapping of values and check it as a whole.

        Args:
            values: What a study file holds.

        Raises:
            ConfigurationError: Fields do not fit; the message names each, with what does.
        """
        if not isinstance(values.get("factors", {}), Mapping):
            raise ConfigurationError(f"factors: a table with the levels of each, not {values['factors']!r}")
        try:
            design = cls.model_validate(fields_in(values))
        except ValidationError as error:
            raise ConfigurationError(explain(error, cls)) from error
        at_most = design.factors.combinations * design.repeats
        if at_most > MOST_RUNS:
            raise ConfigurationError(
                f"repeats: the study would have up to {at_most:,} runs, above {MOST_RUNS:,}: leave out levels, or "
                "repeat less"
            )
        _ = design.plan  # what cannot be run is said here, not when it is run
        return design

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a design from a TOML file.

        Args:
            path: The file.

        Raises:
            ConfigurationError: The message names the file and what is wrong in it.
        """
        values = read_study_file(path)
        try:
            return cls.of(values)
        except ConfigurationError as error:
            raise ConfigurationError(f"study file {path}: {error}") from error

    @functools.cached_property
    def plan(self) -> SweepPlan:
        """The combinations of the design, and those that are impossible."""
        return plan_of(self)

    @property
    def total_runs(self) -> int:
        """Number of runs of all combinations together."""
        return len(self.plan.combinations) * self.repeats

    def to_dict(self) -> dict[str, Any]:
        """Return everything that determines the runs, as JSON; equal designs give equal JSON."""
        unsaid = {"adoption"} if self.factors.adoption == (0.0,) else set()
        defaults = World().simulation
        changed = {name: value for name, value in self.world.simulation.items() if value != defaults[name]}
        # Only where there is one: a study without is the one that it was before there were any.
        changed |= {"budget": budget} if (budget := self.budget.second_as_json()) else {}
        values = self.model_dump(mode="python", exclude={"factors", "system", "world"}) | changed
        factors = self.factors.model_dump(mode="python", exclude={"alternative", "latency_profile", *unsaid})
        # Once a factor; ids of studies stay what they were.
        factors["policies"] = ["none"]
        factors["alternative"] = alternatives_json(alternatives_of(self.factors))
        factors["latency_profile"] = [profile_of(item).to_dict() for item in self.factors.latency_profile]
        values |= self.library.design() | {"run_seeds": RUN_SEEDS}
        factors["workload"] = [shown_name(name) for name in self.workloads]
        jsonable: dict[str, Any] = json.loads(json.dumps({**values, "factors": factors}))
        return jsonable

    def __repr__(self) -> str:
        title = f"StudyDesign {self.name!r}, seed {self.seed}"
        try:
            runs = f"{len(self.plan.combinations)} combinations × {self.repeats} repeats = {self.total_runs:,} runs"
            labels = [short_label(item) for item in alternatives_of(self.factors)]
        except ConfigurationError as error:
            # A name that nothing has is found when the runs are planned, and to look at a design must not raise.
            return f"{title}: {error}"
        profiles = [profile_of(item).level for item in self.factors.latency_profile]
        workloads = [shown_name(name) for name in self.workloads]
        levels = {**dict(self.factors), "alternative": labels, "latency_profile": profiles, "workload": workloads}
        shown = self.factors.model_fields_set | ({"workload"} if self.own is not None else set())
        shown |= {name for name, values in levels.items() if len(values) > 1}
        lines = [f"  {name}: {', '.join(map(level, values))}" for name, values in levels.items() if name in shown]
        lines += [f"  second budgets: {self.budget.level}"] if self.budget.is_second else []
        return "\n".join([f"{title}: {runs}", *lines])

    @property
    def study_id(self) -> str:
        """Id derived from the design: equal designs have equal ids."""
        design = self.to_dict()
        # The whole names: files of one name in two folders are two.
        design["factors"]["workload"] = list(self.workloads)
        return study_id_of(self.name, design)


# ---- what the system and the world of a study settle, and what remains to sweep


def fields_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a study as the fields of a design, with a system, a world and factors.

    What a system or a world has one value of is one level of a factor. Files of earlier versions have those values at
    the top, and are read as they are.
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
    if isinstance(world, Replay):
        raise ConfigurationError(
            "replay: a study is not swept over a recording; compare replays it, at one decision timeout after another: "
            "dl.compare(system, decision_timeout_s, world=dl.Replay(folder))"
        )
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
    if system.budget is not None and system.budget.time_s is not None:
        levels["decision_timeout_s"] = system.budget.time_s
    if system.kind not in ("", DocMind.kind):
        levels["workload"] = system.kind
    if isinstance(system, OwnSystem):
        for name in _NOT_OF_A_GRAPH:
            if name in factors:
                raise ConfigurationError(
                    f"factors.{name}: it is of the lab's own systems, and a graph of your own has none; leave it out"
                )
    for name in levels.keys() & factors.keys():
        raise ConfigurationError(f"{name}: it is a factor and an option of the system or the world; leave one out")
    return {"system": system, "world": world, "factors": {**levels, **factors}}


# ---- words


def read_study_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of the file. Raises: ConfigurationError naming the file and what is wrong with it."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"study file {path} cannot be read ({error.strerror}); check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"study file {path} is not TOML: {error}") from error


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Explain each field that does not fit the model, in one line each."""
    lines = []
    for problem in error.errors():
        if problem["type"] == "default_factory_not_called":
            # Nobody gave that field: another one is wrong, on which its default depends.
            continue
        names, inner = _field(problem["loc"], model)
        field = ".".join(names)
        if problem["type"] == "extra_forbidden":
            lines.append(f"{field}: there is no such field; there are {', '.join(sorted(inner.model_fields))}")
        else:
            message = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{field}: {message}, not {problem['input']!r}" if names else f"{field}: {message}")
    return "; ".join(dict.fromkeys(lines))


def _field(location: tuple[int | str, ...], model: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """Return the names that lead to a field, and the model it belongs to, without kinds and indices of levels."""
    names: list[str] = []
    for part in map(str, location):
        names.append(part)
        field = model.model_fields.get(part)
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            break
        model = field.annotation
    return names, model
