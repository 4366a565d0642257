"""Options by name, as a command line and a study file have them, as the system and the world that they mean.

nouns_of({"graph": "my_app:graph", "inputs": "inputs.jsonl", "latencies": "typical"})
# {"system": dl.graph("my_app:graph", inputs="inputs.jsonl"), "world": dl.World(latencies="typical")}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.system_options import LAB_SYSTEMS, Agent, Command, Graph, OtherSystem, System
from docmind_lab.experiments.world_options import AnyWorld, Live, Replay, ScriptedModel, World

OWN_SYSTEMS: Final[dict[str, type[System]]] = {"graph": Graph, "agent": Agent, "command": Command}
"""The systems of a user's own by the option that names one."""

SYSTEMS: Final = (*OWN_SYSTEMS.values(), *LAB_SYSTEMS.values(), OtherSystem)
MODEL: Final = "model_"
"""How the options of the simulated model begin."""


def fields_of(noun: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a noun by the names of their options; those of the simulated model with `MODEL` before."""
    fields = {field.name: field for field in dataclasses.fields(noun)}
    if fields.pop("model", None) is not None:
        fields |= {f"{MODEL}{field.name}": field for field in dataclasses.fields(ScriptedModel)}
    return fields


ALL_OF_SYSTEMS: Final = frozenset(name for noun in SYSTEMS for name in fields_of(noun))
ALL_OF_WORLDS: Final = frozenset(fields_of(Live))


def nouns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of `compare` that options mean; those that are of no system and no world stay as they are.

    Args:
        options: Options by name: the fields of systems and worlds, "system" for a system of the lab, "replay" for the
            folder of a recording. None, or a name that is left out, is as by default.

    Raises:
        ConfigurationError: An option does not go with another, or is of another system.
    """
    options = {name: value for name, value in options.items() if value is not None}
    of_system = {name: value for name, value in options.items() if name in ALL_OF_SYSTEMS or name == "system"}
    of_world = {name: value for name, value in options.items() if name in ALL_OF_WORLDS or name == "replay"}
    rest = {name: value for name, value in options.items() if name not in {*of_system, *of_world}}
    return {"system": system_in(of_system), "world": world_in(of_world), **rest}


def system_in(options: Mapping[str, Any]) -> System:
    """Return the system that options mean. Raises: ConfigurationError for an option of another system."""
    own = [name for name in OWN_SYSTEMS if name in options]
    names = [*(["system"] if "system" in options else []), *own]
    if len(names) > 1:
        raise ConfigurationError(f"{' and '.join(names)} name {len(names)} systems; leave one out")
    values = {name: value for name, value in options.items() if name != "system"}
    if own:
        noun = OWN_SYSTEMS[own[0]]
    else:
        name = str(options.get("system", "docmind"))
        noun = LAB_SYSTEMS.get(name, OtherSystem)
        if noun is OtherSystem:
            _require_elsewhere(name)
            values["kind"] = name
    fields = fields_of(noun)
    for name in values:
        if name not in fields:
            having = ", ".join(_called(other) for other in SYSTEMS if name in fields_of(other))
            raise ConfigurationError(f"{name} is an option of {having}, and not of {_called(noun)}; leave it out")
    return noun(**values)


def _called(noun: type[System]) -> str:
    return noun.noun.removeprefix("dl.")


def _require_elsewhere(name: str) -> None:
    if ":" not in name:
        raise ConfigurationError(
            f"unknown system {name!r}; the systems are {', '.join(LAB_SYSTEMS)}, or module:ATTRIBUTE for another"
        )


def world_in(options: Mapping[str, Any]) -> AnyWorld:
    """Return the world that options mean: live if one is of live endpoints, a replay if one names a recording.

    Nothing is sent to a user's own endpoints unless `services` says so.
    Raises: ConfigurationError for an option that a recording has settled.
    """
    values = dict(options)
    folder = values.pop("replay", None)
    if folder is not None:
        for name in values.keys() - {"settings", "before_sending"}:
            raise ConfigurationError(f"{name}: the recording has settled it; leave it out of a replay")
        return Replay(folder)
    model = {name.removeprefix(MODEL): values.pop(name) for name in list(values) if name.startswith(MODEL)}
    if model:
        values["model"] = ScriptedModel(**model)
    only_live = fields_of(Live).keys() - fields_of(World).keys()
    is_live = any(name in only_live and value is not False and value != "simulated" for name, value in values.items())
    if is_live:
        if values.get("clock", "wall") != "wall":
            option = next(name for name in values if name in only_live)
            raise ConfigurationError(f"{option}: in virtual time nothing is sent; use the wall clock (--clock wall)")
        return Live(**{"services": "simulated"} | values)
    return World(**{name: value for name, value in values.items() if name not in only_live})


def as_live(world: World, **more: Any) -> Live:
    """Return a world on the wall clock with these fields of a live one; nothing goes to a user's own endpoints anew."""
    values = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    services = getattr(world, "services", "simulated")
    return Live(**values | {"clock": "wall", "services": services} | more)
