"""The JSON that a prompt asks for without a JSON schema, as a schema: by an example, or by guess.

    example_shown('Reply with JSON: {"score": int, "verdict": "good" | "bad"}')
    guessed_schema('Respond with JSON that has "title" and "tags" (list of strings)')

Prompts show what no parser of JSON reads: types in place of values, choices, comments, dots, braces written twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from docmind_lab.services.scripted_model.decisions import options_in

Schema = dict[str, Any]

WANTS_JSON: Final = re.compile(
    r"\b(return|respond|reply|output|answer|format|produce|provide|write)\b[^.\n]{0,80}\bJSON\b", re.IGNORECASE
)
_LIST: Final = re.compile(r"\bJSON[ -]?(array|list)\b|\b(array|list) of JSON\b", re.IGNORECASE)
_QUOTED_KEY = re.compile(r"[\"'`](\w+)[\"'`](?P<words>[^\"'`\n]{0,100})")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:-|–|to|and)\s*(\d+(?:\.\d+)?)")
_KINDS: Final = (
    ("array", re.compile(r"\b(list|array|lists|arrays)\b", re.IGNORECASE)),
    ("boolean", re.compile(r"\bbool(ean)?\b|\btrue\b.{1,5}\bfalse\b|\btrue (if|when)\b", re.IGNORECASE)),
    ("integer", re.compile(r"\b(int|integer|whole number)\b", re.IGNORECASE)),
    ("number", re.compile(r"\b(float|number|decimal|double)\b", re.IGNORECASE)),
    ("number", re.compile(r"^\W*\d+(\.\d+)?\s*(-|–|to)\s*\d+(\.\d+)?\W*$", re.IGNORECASE)),
)
_ITEMS = re.compile(r"\W*(?P<kind>\w+)\s*\[\]\W*")
"""What TypeScript calls a list: "string[]"."""
_CHOICE = re.compile(r"[\w' \"-]{1,30}")
# Up to the next comma or end of a bracket that is not inside quotes or a bracket of its own.
_SCALAR = re.compile(r"(?:\"(?:[^\"\\\n]|\\.)*\"|<(?:[^>\n]|>(?==))*>|\[[^\]\n]*\]|\([^)\n]*\)|[^,}\]\n\"])+")
_ONE_OF = re.compile(r"\bone of:?\s+(?P<options>[\w-]+(?:,\s*(?:or\s+)?[\w-]+)*(?:,?\s+or\s+[\w-]+|,\s*[\w-]+))\W*$")
"""At the end of an example's text: "<one of: low, medium, high>"."""
_SPACE = re.compile(r"\s+|//[^\n]*|#[^\n]*")
_BETWEEN = re.compile(rf"{_SPACE.pattern}|,|\.\.\.|…")
_DEEPEST = 20
_MOST_ITEMS = 20
_MOST_STARTS = 100
_LONGEST = 8_000


def example_shown(prompt: str) -> Schema | None:
    """Return a schema of the example of JSON that a prompt shows; None if it shows none."""
    match = WANTS_JSON.search(prompt)
    is_list = _asks_for_list(prompt, match)
    if is_list and match:
        after = next(_examples(prompt[match.start() :], plain=True), None)
        if after and after.get("type") == "array":
            return {"minItems": 1, **after}
    example = next(_examples(prompt), None)
    return _list_of(example) if is_list and example else example


def guessed_schema(prompt: str) -> Schema:
    """Return a schema of JSON without an example: the quoted names near the word JSON, or a text `answer`."""
    request = WANTS_JSON.search(prompt)
    near = prompt[request.start() : request.end() + 300] if request else ""
    quoted = {match[1]: match["words"] for match in _QUOTED_KEY.finditer(near)}
    fields = {name: _guessed_field(name, words, prompt) for name, words in quoted.items()}
    if _asks_for_list(prompt, request):
        return _list_of(_object(fields) if fields else {"type": "string"})
    return _object(fields or {"answer": {"type": "string"}})


def _guessed_field(name: str, words: str, prompt: str) -> Schema:
    """Return the schema of a field by the words after its name, or by the quoted options of a line that names it."""
    field = described(words)
    named = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    # A line that asks for JSON quotes the names of the fields, which are no options.
    lines = (line for line in prompt.splitlines() if named.search(line) and not WANTS_JSON.search(line))
    options = next((choices for line in lines if (choices := options_in(line)) and name not in choices), ())
    return {"enum": list(options)} if options and field == {"type": "string"} else field


def _asks_for_list(prompt: str, match: re.Match[str] | None) -> bool:
    return match is not None and bool(_LIST.search(prompt[match.start() : match.end() + 20]))


def _list_of(items: Schema) -> Schema:
    return items if items.get("type") == "array" else {"type": "array", "items": items, "minItems": 1}


def schema_of(example: Any) -> Schema:
    """Return a schema of values like an example's."""
    if isinstance(example, dict):
        return _object({name: schema_of(value) for name, value in example.items()})
    if isinstance(example, list):
        return {"type": "array", "items": schema_of(example[0]) if example else {"type": "string"}}
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, int | float):
        # The number of an example says how large one is: 0 is the place of the first, 0.9 a share, 8 a score.
        low, high = min(0 if isinstance(example, float) else 1, example), max(0, example)
        is_share = isinstance(example, float) and 0 <= example <= 1
        kind = "integer" if isinstance(example, int) else "number"
        return {"type": kind, "minimum": low, "maximum": 1 if is_share else high}
    listed = _ONE_OF.search(example) if isinstance(example, str) else None
    options = re.split(r"\s*\|\s*|\s+or\s+", example) if isinstance(example, str) else []
    if listed:
        return {"enum": re.split(r",?\s+or\s+|,\s*", listed["options"])}
    # "yes or no", not a sentence with an "or" in it.
    is_choice = len(options) > 1 and all(re.fullmatch(r"[\w'\"-]{1,30}", option) for option in options)
    return {"enum": [option.strip("'\"") for option in options]} if is_choice else {"type": "string"}


def _object(fields: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _examples(prompt: str, *, plain: bool = False) -> Iterator[Schema]:
    """Yield a schema of each object or list of objects that a prompt shows. plain: of quoted texts too."""
    end = 0
    for start in [match.start() for match in re.finditer(r"[{\[]", prompt)][:_MOST_STARTS]:
        if start < end:
            continue
        try:
            value, end = json.JSONDecoder().raw_decode(prompt, start)
            schema = schema_of(value)
        except (ValueError, RecursionError):
            reader = _Reader(prompt[: start + _LONGEST], start)
            try:
                schema = reader.value()
            except (ValueError, IndexError, RecursionError):
                continue
            end = reader.at
        inner = schema.get("items", schema)
        if inner.get("properties") or (
            plain and schema["type"] == "array" and prompt[start + 1 :].lstrip()[:1] in "\"'"
        ):
            yield schema


def described(words: str) -> Schema:
    """Return the schema of a field by the words for its value, such as "(integer)" or "string[]"."""
    items = _ITEMS.fullmatch(words)
    if items:
        return {"type": "array", "items": described(items["kind"]), "minItems": 1}
    kind = next((kind for kind, pattern in _KINDS if pattern.search(words)), "")
    if kind == "array":
        least = _bounds(words).get("minimum", 1)
        return {"type": "array", "items": {"type": "string"}, "minItems": min(max(1, int(least)), _MOST_ITEMS)}
    if kind == "boolean":
        return {"type": "boolean"}
    if kind:
        return {"type": kind, **_bounds(words)}
    options = options_in(words)
    return {"enum": list(options)} if options else {"type": "string"}


def _bounds(words: str) -> Schema:
    match = _RANGE.search(words)
    if not match or float(match[1]) > float(match[2]):
        return {}
    low, high = (float(part) if "." in part else int(part) for part in match.groups())
    return {"minimum": low, "maximum": high}


class _Reader:
    """Reads an example that is nearly JSON. Its methods raise ValueError or IndexError where it is not."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at, self.depth = text, at, 0

    def value(self) -> Schema:
        """Read a value, and return its schema."""
        self._skip(_SPACE)
        sign = self.text[self.at]
        if sign not in "{[":
            return self._scalar()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError("too deep")
        schema = self._fields() if sign == "{" else self._items()
        self.depth -= 1
        return schema

    def _skip(self, what: re.Pattern[str]) -> None:
        while match := what.match(self.text, self.at):
            self.at = match.end()

    def _fields(self) -> Schema:
        # In a template of Python's, each brace is there twice.
        self.at += 2 if self.text[self.at : self.at + 2] == "{{" else 1
        fields: dict[str, Schema] = {}
        while True:
            self._skip(_BETWEEN)
            if self.text[self.at] == "}":
                self.at += 2 if self.text[self.at : self.at + 2] == "}}" else 1
                return _object(fields)
            key = re.compile(r"[\"'`]?(?P<key>[A-Za-z_][\w -]{0,60}?)[\"'`]?\s*:(?!//)").match(self.text, self.at)
            if key is None:
                raise ValueError("no key")
            self.at = key.end()
            fields[key["key"]] = self.value()

    def _items(self) -> Schema:
        self.at += 1
        items: list[Schema] = []
        while True:
            self._skip(_BETWEEN)
            if self.text[self.at] == "]":
                self.at += 1
                return {"type": "array", "items": items[0] if items else {"type": "string"}, "minItems": 1}
            items.append(self.value())

    def _scalar(self) -> Schema:
        match = _SCALAR.match(self.text, self.at)
        if match is None:
            raise ValueError("no value")
        self.at = match.end()
        text = re.split(r"\s(?://|#)", match[0])[0].strip()
        try:
            return schema_of(json.loads(text))
        except ValueError:
            pass
        parts = [part.strip(" \"'`") for part in re.split(r"\s*\|\s*|\s+or\s+|(?<=[\"'])\s*/\s*(?=[\"'])", text)]
        is_choice = len(parts) > 1 and all(_CHOICE.fullmatch(part) for part in parts)
        if is_choice and {part.lower() for part in parts} <= {"true", "false"}:
            return {"type": "boolean"}
        if is_choice and not {"null", "none", "None"} & set(parts):
            return {"enum": parts}
        return described(text)
