"""Parse tool calls from a model's reply: native ones, and those that it wrote into its text.

    parse_tool_calls('I call {"name": "create_entity", "args": "{\\"name\\": \\"Oslo\\"}"} now')
    # [ToolCall(name="create_entity", arguments={"name": "Oslo"}, repaired=False)]

Strict JSON first; what is damaged is repaired (json_repair) only if its brackets close. A repair at the end of a text
invents what is missing there: it has turned a city that was cut off after two letters into "Os". So of what is still
open at the end only the calls in it that are whole are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from json_repair import repair_json
from langchain_core.messages import AIMessage
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from docmind_lab.services.scripted_model.conversation import parse_json

_FENCE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*$", re.MULTILINE)
_BRACKET = re.compile(r"[{\[]")
_BRACKETS = re.compile(r"[{}\[\]]")
_WRAPPERS = ("tool_calls", "tool_call", "function", "calls")
_CUT = "length"
# Brackets that never close are looked into one after the other, each to the end of the text: noise must not cost
# the square of its length.
_MOST_OPEN = 40
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asks for. repaired: mended before it was read. id: of a native call, owed a result."""

    name: str
    arguments: Mapping[str, Any]
    repaired: bool = False
    id: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Parsed:
    """The calls parsed from a reply. invalid: how many there were besides that cannot be used."""

    calls: tuple[ToolCall, ...] = ()
    invalid: int = 0


def parse_tool_calls(text: str, finish_reason: str = "stop") -> list[ToolCall]:
    """Return the calls in a model's text, in order, none whose end was cut off ("length" says that it was)."""
    return list(parse_text(text, finish_reason).calls)


def parse_text(text: str, finish_reason: str = "stop") -> Parsed:
    """Parse the calls in a model's text as `parse_tool_calls` does, and count what cannot be used."""
    reading = _Reading()
    whole = parse_json(text.strip())
    if whole is not None:
        reading.take(parse_json(whole) if isinstance(whole, str) else whole)
    else:
        for segment in _FENCE.split(text):
            reading.read(segment)
    return reading.result(is_cut=finish_reason == _CUT)


def parse_message(message: AIMessage) -> Parsed:
    """Parse the native calls of a message, with their ids; if it has none, the calls in its text.

    Native calls whose arguments are damaged are mended; of a message that was cut, the last one is left out.
    """
    cut = message.response_metadata.get("finish_reason") == _CUT
    if not message.tool_calls and not message.invalid_tool_calls:
        return parse_text(message.text, _CUT if cut else "stop")
    reading = _Reading()
    reading.calls = [ToolCall(call["name"], call["args"], id=call["id"] or "") for call in message.tool_calls]
    for damaged in message.invalid_tool_calls:
        before = len(reading.calls)
        reading.take({"name": damaged.get("name"), "arguments": damaged.get("args") or ""})
        reading.calls[before:] = [replace(call, id=damaged.get("id") or "") for call in reading.calls[before:]]
    return reading.result(is_cut=cut)


class _Reading:
    """The parser's state: the calls so far. ends_open: whether a bracket after the last of them never closes."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.ends_open = False
        self.invalid = 0

    def read(self, segment: str) -> None:
        """Read the calls in a text between two code fences."""
        position = opened = 0
        while (bracket := _BRACKET.search(segment, position)) is not None and opened < _MOST_OPEN:
            begin = bracket.start()
            parsed_value = _value_at(segment, begin)
            if parsed_value is None:
                self.ends_open, position, opened = True, begin + 1, opened + 1
            else:
                value, position, repaired = parsed_value
                self.take(value, repaired)

    def take(self, value: Any, repaired: bool = False) -> None:
        """Add the calls that a JSON value holds."""
        for entry in _entries(value):
            context = {"repaired": repaired}
            try:
                call = _Call.model_validate(entry, context=context)
            except ValidationError:
                self.invalid += any(alias in entry for alias in _ARGUMENTS.choices)
            else:
                self.calls.append(ToolCall(call.name, call.arguments, context["repaired"]))
                self.ends_open = False

    def result(self, *, is_cut: bool) -> Parsed:
        """Return everything parsed. is_cut: the text ends in a call, the last one unless another is open there."""
        calls = self.calls[:-1] if is_cut and not self.ends_open else self.calls
        return Parsed(tuple(calls), self.invalid)


def _value_at(text: str, begin: int) -> tuple[Any, int, bool] | None:
    """Return the value that begins at a bracket, its end, and whether it was repaired; None if it does not close."""
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        pass
    else:
        return value, end, False
    closed = closing_of(text, begin)
    return None if closed is None else (_repair(text[begin:closed]), closed, True)


def _repair(text: str) -> Any:
    try:
        return repair_json(text, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that may be calls, from nested lists and wrappers."""
    if isinstance(value, list):
        for item in value:
            yield from _entries(item)
    elif isinstance(value, dict):
        inner = next((value[key] for key in _WRAPPERS if isinstance(value.get(key), dict | list)), None)
        if inner is None:
            yield value
        else:
            yield from _entries(inner)


_ARGUMENTS = AliasChoices("arguments", "args", "input", "parameters")


class _Call(BaseModel):
    """The common shape that every call is converted to."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    name: str = Field(min_length=1, validation_alias=AliasChoices("name", "tool", "tool_name", "function"))
    arguments: dict[str, Any] = Field(validation_alias=_ARGUMENTS)

    @field_validator("arguments", mode="before")
    @classmethod
    def _decode_arguments(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            return value
        decoded = parse_json(value)
        if decoded is not None:
            return decoded
        text = value.strip()
        if closing_of(text, 0) != len(text):
            raise ValueError("the text of the arguments does not end where it should")
        if info.context is not None:
            info.context["repaired"] = True
        return _repair(text)


def closing_of(text: str, begin: int) -> int | None:
    """Return the position after the bracket that closes the one at `begin`; None if it never closes."""
    depth = 0
    for bracket in _BRACKETS.finditer(text, begin):
        depth += 1 if bracket[0] in "{[" else -1
        if depth == 0:
            return bracket.end()
    return None
