"""A study in the words of `compare`, as the values of a design: `[system]`, `[world]` and `[factors]`.

    repeats = 40

    [system]
    graph = "my_app:graph"              # or name = "research", or documents = "papers"
    inputs = "inputs.jsonl"

    [world]
    latencies = "typical"               # or replay = "monday"

    [factors]
    alternatives = ["unguarded", "A", "B"]
    decision_timeout_s = [5, 10, 20]

What a system or a world has one value of is one level of a factor. Files of earlier versions have those values at the
top, and are read as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.core.budgets import Budget
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.experiments.comparison.documents import kind_of
from docmind_lab.experiments.comparison.own_graph import recording_of
from docmind_lab.experiments.flat_options import nouns_of
from docmind_lab.experiments.nouns import LAB_SYSTEMS, Command, OwnSystem, System
from docmind_lab.experiments.world import AnyWorld, Live, Replay

FACTORS: Final = {
    "alternatives": "alternative",
    "latencies": "latency_profile",
    "faults": "fault",
    "system": "workload",
}
"""What a factor is called in a study file → what a design and its stored manifest call it."""

_OF_A_RUN: Final = ("retries", "router_injection", "adoption")
"""Options of a system that are factors of a design."""


def values_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a study as a design has them. Raises: ConfigurationError for a table that cannot be used."""
    made = {name: value for name, value in values.items() if name not in ("system", "world")}
    tables = {}
    for name in ("system", "world"):
        tables[name] = values.get(name, {})
        if not isinstance(tables[name], Mapping):
            raise ConfigurationError(f"{name}: must be a table, such as [{name}], not {tables[name]!r}")
    if isinstance(made.get("factors"), Mapping):
        made["factors"] = designed_factors(made["factors"])
    if not tables["system"] and not tables["world"]:
        return made
    named = {"system" if name == "name" else name: value for name, value in tables["system"].items()}
    nouns = nouns_of(named | dict(tables["world"]))
    return merged(values_of(nouns["system"], nouns["world"], with_kind=bool(named)), made)


def designed_factors(factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return factors by the names that a design and its stored manifest have for them."""
    named = {FACTORS.get(name, name): levels for name, levels in factors.items()}
    if "workload" in named:
        levels = _as_list(named["workload"])
        named["workload"] = [LAB_SYSTEMS[each].kind if each in LAB_SYSTEMS else each for each in levels]
    if "server" in named:
        # A design has the two extremes as a switch, as it had before there were profiles.
        levels = _as_list(named.pop("server"))
        switch = [level == STOPS.name for level in levels if level in (STOPS.name, GOES_ON.name)]
        profiles = [level for level in levels if level not in (STOPS.name, GOES_ON.name)]
        named |= {"stops_on_disconnect": switch} if switch else {}
        named |= {"server_behaviour": [*(["own"] if switch else []), *profiles]} if profiles else {}
    return named


def _as_list(levels: Any) -> list[Any]:
    return list(levels) if isinstance(levels, list | tuple) else [levels]


def merged(of_nouns: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a system and a world with those of a design. Raises: ConfigurationError for one twice."""
    factors = made.get("factors", {})
    if not isinstance(factors, Mapping):
        return of_nouns | made  # a wrong type is said where every field is checked
    for name in of_nouns["factors"].keys() & factors.keys():
        raise ConfigurationError(f"{name}: it is a factor and an option of the system or the world; leave one out")
    return of_nouns | made | {"factors": {**of_nouns["factors"], **factors}}


def values_of(system: System, world: AnyWorld, *, with_kind: bool = True) -> dict[str, Any]:
    """Return a system and a world as values of a design.

    with_kind: whether the kind of system is one of them, which is then no factor.
    Raises: ConfigurationError for what a study cannot have.
    """
    values, factors = _of_system(system)
    if not with_kind or isinstance(world, Replay):
        factors.pop("workload", None)
    if isinstance(world, Replay):
        # The recording has the rest.
        return values | {"replay": str(world.folder), "factors": factors}
    if isinstance(world, Live) and (isinstance(system, OwnSystem) or recording_of(world).is_live):
        raise ConfigurationError(
            "world: a study sends nothing to a graph's own endpoints, and has no caps and no recording; use compare"
        )
    values |= {"cpu_charge": world.cpu_charge, "model_variation": world.model.variation}
    values |= {"model_under_pressure": world.model.under_pressure}
    if world.endpoints is not None:
        values["endpoints"] = str(world.endpoints)
    if world.latencies is not None:
        factors["latency_profile"] = world.latencies
    if world.faults:
        faults = [world.faults] if isinstance(world.faults, str) else world.faults
        factors["fault"] = "+".join(map(str, faults))
    if world.behaviour == GOES_ON:
        factors["stops_on_disconnect"] = False
    elif world.behaviour != STOPS:
        if not isinstance(world.server, str):
            raise ConfigurationError("server: a study names a profile, by its name or its .json file")
        factors["server_behaviour"] = world.server
    if world.clock is not None:
        factors["clock"] = world.clock
    return values | {"factors": factors}


def _of_system(system: System) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(system, Command):
        raise ConfigurationError("command: a study runs in virtual time, and a program in real time; use compare")
    values: dict[str, Any] = {}
    factors = _of_budget(system.budget, values)
    for field in dataclasses.fields(system):
        value = getattr(system, field.name)
        if field.name in ("budget", "kind") or (value == field.default and field.name != "inputs"):
            continue
        if field.name == "enforced":
            raise ConfigurationError("enforced: a study has no such option; use compare")
        (factors if field.name in _OF_A_RUN else values)[field.name] = value
    if not isinstance(system, OwnSystem):
        factors["workload"] = kind_of(system)
        values = {name: str(value) for name, value in values.items()}
    return values, factors


def _of_budget(budget: Budget | None, values: dict[str, Any]) -> dict[str, Any]:
    if budget is None:
        return {}
    if budget.price is not None:
        values["price"] = budget.price.written
    limits = {f"budget_{kind}": budget.limit(kind) for kind in ("tokens", "calls", "cost")}
    return {name: limit for name, limit in limits.items() if limit is not None}
