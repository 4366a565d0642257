"""Options of the command line that are the fields of systems and worlds: name, default and help are the fields' own.

@takes("graph", "inputs", "latencies")
def command(options: Given, runs: …): …         # options: those that were given, as `nouns_of` takes them
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import OLD_NAMES
from docmind_lab.experiments.world_options import Live, Replay, ScriptedModel, World, fields_of
from docmind_lab.systems.system_catalogue import LAB_SYSTEMS, SYSTEMS, System

TIMEOUT_VARIABLE = "DOCMIND_AGENTS__DECISION_TIMEOUT"
SYSTEM_PANEL: Final = "What is put under the deadline"
RETRIEVAL_PANEL: Final = "How it retrieves"
WORLD_PANEL: Final = "What it meets"
LIVE_PANEL: Final = "What is sent to live endpoints, recorded and replayed"

Given = dict[str, Any]
"""Options of systems and worlds by name, without those that are as by default."""

NOT_OPTIONS: Final = ("budget", "settings", "before_sending", "kind")
"""Fields that no option sets by itself."""


def json_object(option: str, text: str) -> dict[str, Any]:
    """Return the object that an option's text is as JSON. Raises: ConfigurationError for text that is none."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f'{option} must be a JSON object, such as \'{{"user_id": "ada"}}\', not {text}')
    return value


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# Fields that a text stands for, and what reads it.
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "context": functools.partial(json_object, "--context"),
    "config": functools.partial(json_object, "--config"),
    "resume": lambda texts: [_json_or_text(text) for text in texts],
}


def flag_of(name: str) -> str:
    """Return the option of a field: without the unit, and with hyphens."""
    return f"--{name.removesuffix('_s').replace('_', '-')}"


def _documented(noun: type) -> dict[str, str]:
    """Return what the docstring of a noun says of each of its own fields."""
    text = inspect.getdoc(noun) or ""
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", text.partition("Args:")[2], flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}


def _option(kind: Any, default: Any, name: str, text: str, panel: str) -> inspect.Parameter:
    flags = [flag_of(name)]
    if kind == (bool | None):
        flags = [f"{flag_of(name)}/--no-{name.replace('_', '-')}"]
    annotation = Annotated[kind, typer.Option(*flags, help=text, rich_help_panel=panel)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameter(name: str, field: Any, text: str, panel: str) -> inspect.Parameter:
    """Return the option of a field: of its type if that is a plain one, of texts if it is a list, else of a text."""
    written = str(field.type).replace("bool | None", "bool|None")
    text = text.replace("None means ", "When left out, ")
    plain = {"bool": bool, "bool|None": bool | None, "int | None": int | None, "float": float, "str": str}
    if written in plain:
        return _option(plain[written], field.default, name, text, panel)
    if "Sequence" in written and name != "command":
        return _option(list[str] | None, None, name, f"{text} May be repeated.", panel)
    # Here nothing goes to a user's own endpoints unless it is asked for.
    default = "simulated" if name == "services" else field.default if isinstance(field.default, str | float) else None
    return _option(str | None, None if default is None else str(default), name, text, panel)


def _parameters() -> dict[str, inspect.Parameter]:
    """Return every option of a system, a world and a recording by its name."""
    parameters = {}
    names = ", ".join(LAB_SYSTEMS)
    text = f"One of the lab's: {names}; or module:ATTRIBUTE for another's."
    parameters["system"] = _option(str | None, None, "system", f"{text} docmind when left out.", SYSTEM_PANEL)
    nouns: list[tuple[type, str]] = [
        (noun, SYSTEM_PANEL) for system in SYSTEMS for noun in system.__mro__ if issubclass(noun, System)
    ]
    for noun, panel in [*nouns, (World, WORLD_PANEL), (Live, LIVE_PANEL)]:
        known = fields_of(noun)
        for name, words in _documented(noun).items():
            if name in known and name not in (*NOT_OPTIONS, *parameters):
                place = RETRIEVAL_PANEL if name == "router_injection" else panel
                parameters[name] = _parameter(name, known[name], words, place)
        if noun is World:
            for name, words in _documented(ScriptedModel).items():
                flat = f"model_{name}"
                parameters[flat] = _parameter(flat, known[flat], f"Of the simulated model: {words}", panel)
    folder = "Folder of a recording to play in virtual time; budget, runs, alternatives and retries may be others."
    parameters[_REPLAY] = _option(str | None, None, _REPLAY, folder, LIVE_PANEL)
    return parameters


_REPLAY: Final = Replay.__name__.lower()
PARAMETERS: Final = _parameters()
"""The options of systems and worlds, in the order of a help page."""


def takes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a command that takes these options in its parameter `options`; all of them for none."""
    chosen = {name: PARAMETERS[name] for name in names or PARAMETERS}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command, eval_str=True).parameters

        @functools.wraps(command)
        def run(**values: Any) -> Any:
            own_values = {name: values.pop(name, each.default) for name, each in chosen.items()}
            options = {name: value for name, value in own_values.items() if value not in (chosen[name].default, None)}
            return command(
                options={name: _READERS[name](value) if name in _READERS else value for name, value in options.items()},
                **values,
            )

        plain = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own.values() if each.name != "options"]
        vars(run)["__signature__"] = inspect.Signature([*chosen.values(), *plain])
        return run

    return decorate


def right_option(flag: str) -> str:
    """Return what to write in place of an option that was renamed; empty for one that never was."""
    place = OLD_NAMES.get(flag.removeprefix("--").removeprefix("no-").replace("-", "_"), "")
    if place.startswith("a system:"):
        return "now --system"
    named = re.search(r'\((\w+)=(?:"([\w-]+)")?', place)
    if named is None:
        return f"now {flag_of(place)}" if place.isidentifier() else ""
    return f"now {' '.join([flag_of(named[1]), *([named[2]] if named[2] else [])])}"
