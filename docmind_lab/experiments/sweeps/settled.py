"""What the system and the world of a study settle, and what remains to sweep.

What a system or a world has one value of is one level of a factor. Files of earlier versions have those values at the
top, and are read as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.flat_options import nouns_of
from docmind_lab.experiments.sweeps.factors import designed_factors, levels_in
from docmind_lab.experiments.system_options import Command, DocMind, OwnSystem, System
from docmind_lab.experiments.world_options import AnyWorld, Live, Replay, World

_NOT_OF_A_GRAPH: Final = ("workload", "router_injection", "node_mode", "retries", "adoption")

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
    made = {"system": system, "world": world, "factors": {**levels, **factors}}
    budget = fields["system"].budget
    if "price" not in fields and budget is not None and budget.price is not None:
        made["price"] = budget.price.written
    return made
