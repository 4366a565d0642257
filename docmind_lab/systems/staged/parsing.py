"""Parse tool calls from a model's reply: native ones, and those that it wrote into its text.

    parse_tool_calls('I call {"name": "create_entity", "args": "{\\"name\\": \\"Oslo\\"}"} now')
    # [ToolCall(name="create_entity", arguments={"name": "Oslo"}, repaired=False)]

Strict JSON first; what is damaged is repaired (json_repair) only if its brackets close. A repair at the end of a text
invents what is missing there: it has turned a city that was cut off after two letters into "Os". So a call whose end is
not whole is dropped, and with it the last call of whatever encloses it.

Where a bracket closes has to be known before a text is repaired. A quote ends a string only where something of JSON
follows it, and begins one only where a value or a key may stand, so that quotes inside a text, apostrophes and missing
commas do not turn the rest inside out.
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
    """The calls parsed from a reply. dropped_last: the last call was cut off and left out. invalid: unusable calls."""

    calls: tuple[ToolCall, ...] = ()
    dropped_last: bool = False
    invalid: int = 0


def parse_tool_calls(text: str, finish_reason: str = "stop") -> list[ToolCall]:
    """Return the calls in a model's text, in order, none whose end was cut off ("length" says that it was)."""
    return list(parse_text(text, finish_reason).calls)


def parse_text(text: str, finish_reason: str = "stop") -> Parsed:
    """Parse the calls in a model's text as `parse_tool_calls` does, and report what was left out."""
    reading = _Reading()
    whole = parse_json(text.strip())
    if whole is not None:
        value = parse_json(whole) if isinstance(whole, str) else whole
        reading.take(value, 0)
    else:
        for segment in _FENCE.split(text):
            reading.read(segment)
    if finish_reason == _CUT and not reading.ends_open:
        reading.drop_last()
    return reading.result()


def parse_message(message: AIMessage) -> Parsed:
    """Parse the native calls of a message, with their ids; if it has none, the calls in its text.

    Native calls whose arguments are damaged are mended; of a message that was cut, the last one is left out.
    """
    cut = message.response_metadata.get("finish_reason") == _CUT
    if not message.tool_calls and not message.invalid_tool_calls:
        return parse_text(message.text, _CUT if cut else "stop")
    reading = _Reading()
    reading.calls = [(0, ToolCall(call["name"], call["args"], id=call["id"] or "")) for call in message.tool_calls]
    for damaged in message.invalid_tool_calls:
        before = len(reading.calls)
        reading.take({"name": damaged.get("name"), "arguments": damaged.get("args") or ""}, 0)
        reading.calls[before:] = [
            (begin, replace(call, id=damaged.get("id") or "")) for begin, call in reading.calls[before:]
        ]
    if cut:
        reading.drop_last()
    return reading.result()


class _Reading:
    """The parser's state: calls so far, each with the place where it begins in its segment."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, ToolCall]] = []
        self.dropped_last = self.ends_open = False
        self.invalid = 0

    def read(self, segment: str) -> None:
        """Read the calls in a text between two code fences."""
        before = len(self.calls)
        opened: list[int] = []
        position = 0
        while (bracket := _BRACKET.search(segment, position)) is not None and len(opened) < _MOST_OPEN:
            begin = bracket.start()
            parsed_value = _value_at(segment, begin)
            if parsed_value is not None:
                value, end, repaired = parsed_value
                self.take(value, begin, repaired)
                position = end
            else:
                position = begin + 1
                if looks_like_json(segment, begin):
                    opened.append(begin)
        if segment.strip():
            self.ends_open = bool(opened)
        # Where a call had begun after the last whole one, that one is the last, and it is not among the calls.
        if opened and len(self.calls) > before and opened[-1] < self.calls[-1][0]:
            self.drop_last()
        self.dropped_last = self.dropped_last or bool(opened)

    def take(self, value: Any, begin: int, repaired: bool = False) -> None:
        """Add the calls that a JSON value holds."""
        for entry in _entries(value):
            context = {"repaired": repaired}
            try:
                call = _Call.model_validate(entry, context=context)
            except ValidationError:
                self.invalid += any(alias in entry for alias in _ARGUMENTS.choices)
            else:
                self.calls.append((begin, ToolCall(call.name, call.arguments, context["repaired"])))

    def result(self) -> Parsed:
        """Return everything parsed so far."""
        return Parsed(tuple(call for _, call in self.calls), self.dropped_last, self.invalid)

    def drop_last(self) -> None:
        """Drop the last call."""
        self.dropped_last = True
        if self.calls:
            self.calls.pop()


def _value_at(text: str, begin: int) -> tuple[Any, int, bool] | None:
    """Return the value that begins at a bracket, its end, and whether it was repaired; None if it does not close."""
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        pass
    else:
        return value, end, False
    closed = closing_of(text, begin)
    if closed is None or not looks_like_json(text, begin):
        return None
    return _repair(text[begin:closed]), closed, True


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


_CLOSERS = {"{": "}", "[": "]"}
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_AFTER_STRING = frozenset(",:}]\"'“/#")
_BEFORE_STRING = frozenset("{[,:}]")
_PLAUSIBLE = re.compile(
    r"\{\s*(?:[\"'“][^\"'”:{}]*(?:[\"'”]\s*(?::|$)|$)|[A-Za-z_]\w*\s*(?::|$)|//|$)|\[\s*(?:[{\[]|$)"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def looks_like_json(text: str, begin: int) -> bool:
    """Return whether the text at a bracket could be an object with keys, or an array of brackets."""
    return _PLAUSIBLE.match(text, begin) is not None


def closing_of(text: str, begin: int) -> int | None:
    """Return the position after the bracket that closes the one at `begin`; None if it never closes."""
    open_brackets: list[str] = []
    position, before = begin, ""
    while position < len(text):
        character = text[position]
        if character in _QUOTES and (before in _BEFORE_STRING or before == "quote"):
            end = _end_of_string(text, position)
            if end is None:
                return None
            position, before = end, "quote"
            continue
        if character == "/" and (comment := _COMMENT.match(text, position)) is not None:
            position = comment.end()
            continue
        if character in _CLOSERS:
            open_brackets.append(_CLOSERS[character])
        elif character in "}]" and character in open_brackets:
            # A closer that fits further out closes what is inside it too.
            while open_brackets.pop() != character:
                pass
            if not open_brackets:
                return position + 1
        elif not open_brackets:
            return None
        if not character.isspace():
            before = character
        position += 1
    return None


def _end_of_string(text: str, begin: int) -> int | None:
    """Return the position after the quote that ends the string at `begin`; None if there is none."""
    closer, position = _QUOTES[text[begin]], begin + 1
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character == closer:
            rest = text[position + 1 : position + 200].lstrip()
            if not rest or rest[0] in _AFTER_STRING:
                return position + 1
        position += 1
    return None
