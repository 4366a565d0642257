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

from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.experiments.flat_options import nouns_of, options_of
from docmind_lab.experiments.nouns import LAB_SYSTEMS, System
from docmind_lab.experiments.world import AnyWorld

FACTORS: Final = {
    "alternatives": "alternative",
    "latencies": "latency_profile",
    "faults": "fault",
    "system": "workload",
}
"""What a factor is called in a study file → what a design and its stored manifest call it."""

_FACTORS_OF_NOUNS: Final[tuple[str, ...]] = (
    "system",
    "latencies",
    "faults",
    "server",
    "clock",
    "retries",
    "router_injection",
    "adoption",
)
_NOT_OF_A_STUDY: Final = {
    "command": "a study runs in virtual time, and a program in real time",
    "enforced": "a study has no such option",
    "services": "a study sends nothing to a graph's own endpoints",
    **dict.fromkeys(("record", "record_text", "max_requests", "max_tokens"), "a study has no caps and no recording"),
}


def values_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a study as a design has them. Raises: ConfigurationError for a table that cannot be used."""
    made = {name: value for name, value in values.items() if name not in ("system", "world")}
    options: dict[str, Any] = {}
    for name in ("system", "world"):
        table = values.get(name, {})
        if not isinstance(table, Mapping):
            raise ConfigurationError(f"{name}: must be a table, such as [{name}], not {table!r}")
        options |= {"system" if option == "name" else option: value for option, value in table.items()}
    if isinstance(made.get("factors"), Mapping):
        made["factors"] = designed_factors(made["factors"])
    nouns_of(options)  # what cannot be together is said here
    return _merged(options, made)


def values_of(system: System | None, world: AnyWorld, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system and a world as values of a design, with others. Raises: ConfigurationError for one twice."""
    return _merged(options_of(system, world), made)


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


def _merged(options: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a design with those that options mean. Raises: ConfigurationError for one twice."""
    values = dict(options)
    if not {"graph", "agent"} & values.keys():
        # Of the lab's own systems the settings say which endpoints are real; `sweep` has them.
        values = {name: value for name, value in values.items() if name not in ("settings", "services")}
    for name in _NOT_OF_A_STUDY.keys() & values.keys():
        raise ConfigurationError(f"{name}: {_NOT_OF_A_STUDY[name]}; use compare")
    own_factors: dict[str, Any] = {name: values.pop(name) for name in _FACTORS_OF_NOUNS if name in values}
    # Several of them are one level: together, and by role.
    for name, between in (("faults", "+"), ("latencies", ",")):
        if isinstance(own_factors.get(name), list | tuple):
            own_factors[name] = between.join(map(str, own_factors[name]))
    budget = values.pop("budget", None)
    if budget is not None:
        values |= {"price": budget.price.written} if budget.price is not None else {}
        limits = {f"budget_{kind}": budget.limit(kind) for kind in ("tokens", "calls", "cost")}
        own_factors |= {name: limit for name, limit in limits.items() if limit is not None}
    factors = made.get("factors", {})
    if not own_factors or not isinstance(factors, Mapping):
        return values | dict(made)  # a wrong type of factors is said where every field is checked
    of_nouns = designed_factors(own_factors)
    for name in of_nouns.keys() & factors.keys():
        raise ConfigurationError(f"{name}: it is a factor and an option of the system or the world; leave one out")
    return values | dict(made) | {"factors": {**of_nouns, **factors}}
