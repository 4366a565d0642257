"""The inputs of a user's graph: one input for each line of a JSON-lines file, or for each item of a list.

    {"messages": [{"role": "user", "content": "…"}]}      the graph's input
    "What does a with statement do?"                       a text, where the input has `messages`
    {"input": {…} or "…", "gold": ["…"], "id": "q1"}       with what a good answer states, and a name
    {"input": …, "context": {…}, "config": {…}, "resume": […]}   with what the run is given besides

The last forms are read as such where the graph's own input has no key `input`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph.message import add_messages
from langgraph.pregel import Pregel
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN
from docmind_lab.systems.base.questions import Question, json_lines
from docmind_lab.systems.own.references import one_line
from docmind_lab.systems.own.run_settings import RunSettings

Inputs = str | os.PathLike[str] | Iterable[Any]
"""A file, or the items themselves."""

_WRAPPED = {"input", "gold", "id", "context", "config", "resume"}
BOXED = "__input__"
"""Key under which an input stands that is no mapping, as the functional API takes one."""
_ROOT = "__root__"
"""LangGraph's name for the one channel of a state that declares no keys."""

_JSON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple, set, frozenset),
    "object": (dict,),
}


@dataclass(frozen=True)
class GraphInput(Question):
    """One input of a user's graph.

    given: what goes into the graph. gold_facts: what a good answer states. settings: what the run is given besides.
    """

    given: Mapping[str, Any] = field(default_factory=dict, compare=False)
    settings: RunSettings = field(default_factory=RunSettings, compare=False)


def declared_outputs(graph: Pregel[Any, Any, Any, Any]) -> tuple[str, ...]:
    """Return the keys of a graph's state that every output of it has, where it declares an output of its own."""
    outputs = graph.output_channels
    if isinstance(outputs, str) or set(outputs) >= set(graph.stream_channels_list):
        return ()
    declared = getattr(getattr(graph, "builder", None), "output_schema", None)
    # Of a model of pydantic, all; of a TypedDict, all but those that it says may be absent.
    required = getattr(declared, "__required_keys__", outputs)
    with contextlib.suppress(Exception):  # names in annotations that stand for nothing here
        hints = get_type_hints(declared, include_extras=True)
        required = [name for name in required if get_origin(hints.get(name)) is not NotRequired]
    return tuple(name for name in outputs if name in required)


def read_inputs(
    graph: Pregel[Any, Any, Any, Any],
    inputs: Inputs,
    general: RunSettings | None = None,
    convert: Callable[[Any, str], Any] | None = None,
) -> tuple[GraphInput, ...]:
    """Read the inputs, and check each against the graph's schema.

    general: what every run is given besides its input. convert: (item, where it stands) → the item in one of the forms
    above; None where it is in one already.

    Raises: ConfigurationError, which names the line (or item) and the key that does not fit.
    """
    if isinstance(inputs, Mapping):
        raise ConfigurationError("inputs is a list of inputs; put the one into brackets: inputs=[{…}]")
    schema = _Schema(graph, general or RunSettings())
    is_file = isinstance(inputs, str | os.PathLike)
    named = Path(inputs).name if is_file else "inputs"  # type: ignore[arg-type]
    items = json_lines(inputs, named) if is_file else enumerate(inputs, 1)  # type: ignore[arg-type]
    placed = ((f"{named} {'line' if is_file else 'item'} {number}", item, number) for number, item in items)
    result = tuple(
        _parse_item(schema, item if convert is None else convert(item, where), where, number)
        for where, item, number in placed
    )
    if not result:
        raise ConfigurationError(f"{named}: there are no inputs; give one at least")
    ids = [one.id for one in result]
    twice = next((one for one in ids if ids.count(one) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"{named}: two inputs have the id {twice!r}")
    return result


_registered: dict[str, tuple[GraphInput, ...]] = {}


def register(value: Any, own: str, registry: dict[str, Any]) -> str:
    """Register a live object and return its name, with a number if another object has the name already."""
    number = 1
    while True:
        name = own if number == 1 else f"{own}-{number}"
        if registry.setdefault(name, value) == value:
            return name
        number += 1


def register_inputs(inputs: tuple[GraphInput, ...]) -> str:
    """Register inputs and return their name, which stands where other workloads have a corpus."""
    corpus = f"inputs-{fingerprint(inputs)}"
    _registered[corpus] = inputs
    return corpus


def inputs_named(corpus: str) -> tuple[GraphInput, ...]:
    """Return the inputs for a name. Raises: ConfigurationError in a process without them."""
    if corpus not in _registered:
        raise ConfigurationError("a graph of your own is asked its own inputs: dl.graph(graph, inputs)")
    return _registered[corpus]


def share_of_gold(question: Question, answer: str) -> float:
    """Return the share of an input's gold texts that an answer states, case aside; NaN without gold."""
    stated, gold = answer.casefold(), question.gold_facts
    return sum(fact.casefold() in stated for fact in gold) / len(gold) if gold else NAN


def fingerprint(inputs: Sequence[GraphInput]) -> str:
    """Return a short digest of the inputs; equal inputs have equal ones."""
    besides = [[] if one.settings == RunSettings() else [vars(one.settings)] for one in inputs]
    rows = [[one.id, one.given, one.gold_facts, *more] for one, more in zip(inputs, besides, strict=True)]
    content = json.dumps(rows, sort_keys=True, default=repr)
    return hashlib.blake2b(content.encode(), digest_size=4).hexdigest()


def input_keys(graph: Pregel[Any, Any, Any, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return each key of a graph's input with its JSON schema, {} where that is unknown; empty if no key is known."""
    schema = _json_schema(graph)
    if "$ref" in schema:
        schema = schema.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {})
    described: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    builder = getattr(graph, "builder", None)
    declared = getattr(builder, "schemas", {}).get(getattr(builder, "input_schema", None))
    if declared is not None and _ROOT in declared:
        return {}  # a state that is a plain dict takes any key
    if declared is not None:
        return {name: described.get(name, {}) for name in declared}
    names = graph.input_channels
    return described if isinstance(names, str) else {name: described.get(name, {}) for name in names}


def _json_schema(graph: Pregel[Any, Any, Any, Any]) -> Mapping[str, Any]:
    try:
        return graph.get_input_jsonschema()
    except Exception:  # noqa: BLE001 - a state may hold what has no JSON schema, and pydantic says so in many ways
        return {}


class _Schema:
    """The input schema of a graph."""

    def __init__(self, graph: Pregel[Any, Any, Any, Any], general: RunSettings) -> None:
        self.keys, self.graph, self.general = input_keys(graph), graph, general
        # The functional API takes one value of any kind.
        self.is_value = isinstance(graph.input_channels, str) and not self.keys
        declared = getattr(getattr(graph, "builder", None), "input_schema", None)
        self.model = declared if isinstance(declared, type) and issubclass(declared, BaseModel) else None
        self.objects = {} if self.model is not None else _declared_objects(declared)

    def to_input(self, item: Any, where: str) -> Mapping[str, Any]:
        """Convert an item to the graph's input. Raises: ConfigurationError if it does not fit."""
        if self.is_value and not isinstance(item, Mapping):
            return {BOXED: item}
        if isinstance(item, str):
            if "messages" not in self.keys:
                raise ConfigurationError(
                    f"{where}: a text fits an input with messages; this graph's has {self._known()}"
                )
            return {"messages": [HumanMessage(item, id="input")]}
        if not isinstance(item, Mapping):
            raise ConfigurationError(f"{where}: an input is a JSON object or a text, not a {type(item).__name__}")
        for key, value in item.items():
            if self.keys and key not in self.keys:
                raise ConfigurationError(f"{where}: the graph's input has no key {key!r}; it has {self._known()}")
            kind = str(self.keys.get(key, {}).get("type"))
            if key != "messages" and kind in _JSON_TYPES and not _is_a(value, kind):
                raise ConfigurationError(
                    f"{where}: {key} must be {_article(kind)}, not {json.dumps(value, default=repr)}"
                )
        self._checked_by_model(item, where)
        return {key: self._as_declared(key, value) for key, value in item.items()}

    def _as_declared(self, key: str, value: Any) -> Any:
        """Return what JSON has for a key as the objects that the state declares; as it is where it makes none."""
        hint = self.objects.get(key)
        if hint is None or getattr(self.graph.channels.get(key), "operator", None) is add_messages:
            return value  # that reducer makes messages by itself
        try:
            if _mentions(hint, lambda kind: issubclass(kind, BaseMessage)):
                return convert_to_messages(value) if isinstance(value, list) else value
            return TypeAdapter(hint).validate_python(value)
        except (ValueError, TypeError, NotImplementedError, PydanticUserError):
            return value

    def _checked_by_model(self, item: Mapping[str, Any], where: str) -> None:
        if self.model is None:
            return
        try:
            self.model.model_validate(self._reduced(item, where))
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigurationError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        except ConfigurationError:
            raise
        except Exception as error:
            # The graph's own validators raise what they like.
            raise ConfigurationError(f"{where}: the graph's input schema: {one_line(error)}") from error

    def _reduced(self, item: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return an item as the first node sees it, with what each key's reducer makes of its value."""
        values = dict(item)
        for key, channel in self.graph.channels.items():
            if key in values and isinstance(channel, BinaryOperatorAggregate):
                empty = channel.copy()
                try:
                    empty.update([values[key]])
                    values[key] = empty.get()
                except Exception as error:
                    raise ConfigurationError(f"{where}: {key}: {one_line(error)}") from error
        return values

    def _known(self) -> str:
        return ", ".join(self.keys) or "none that can be told"


def _declared_objects(declared: Any) -> dict[str, Any]:
    """Return the types of those keys of a state that hold messages, models of pydantic or dataclasses."""
    try:
        hints = get_type_hints(declared)
    except Exception:  # noqa: BLE001 - a state may name what is not there to be found
        return {}
    return {key: hint for key, hint in hints.items() if _mentions(hint, _is_made_of_json)}


def _is_made_of_json(kind: type) -> bool:
    return issubclass(kind, BaseModel | BaseMessage) or is_dataclass(kind)


def _mentions(hint: Any, fits: Callable[[type], bool]) -> bool:
    """Whether a type is one that fits, or a list, a union or the like of such a type."""
    if isinstance(hint, type) and not get_args(hint):
        return fits(hint)
    return any(_mentions(part, fits) for part in get_args(hint))


def _parse_item(schema: _Schema, item: Any, where: str, number: int) -> GraphInput:
    is_wrapped = (
        isinstance(item, Mapping) and "input" in item and item.keys() <= _WRAPPED and "input" not in schema.keys
    )
    gold = item.get("gold", ()) if is_wrapped else ()
    if not isinstance(gold, list | tuple) or not all(isinstance(fact, str) and fact for fact in gold):
        raise ConfigurationError(f"{where}: gold must be a list of texts, each something that a good answer states")
    value = schema.to_input(item["input"] if is_wrapped else item, where)
    name = str(item.get("id", "")) if is_wrapped else ""
    besides = {key: item[key] for key in ("context", "config", "resume") if is_wrapped and key in item}
    settings = RunSettings.of(**besides, where=where).over(schema.general).for_graph(schema.graph, where)
    return GraphInput(id=name or f"{number:03}", text="", gold_facts=tuple(gold), given=value, settings=settings)


def _is_a(value: Any, kind: str) -> bool:
    is_bool_for_number = isinstance(value, bool) and kind in ("integer", "number")
    return isinstance(value, _JSON_TYPES[kind]) and not is_bool_for_number


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aio' else 'a'} {noun}"
