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

import json_repair

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
# A value in quotes: what is nearly JSON has types and choices without, which are read as texts too.
_QUOTED_VALUE = re.compile(r"(?<=[:,\[])(\s*)\"([^\"\n]*)\"(?=\s*[,}\]])")
_MARK: Final = "\x01"
_MORE = re.compile(r",?\s*(\.\.\.|…)(?=\s*[\]}])")
_BETWEEN_OPTIONS = re.compile(r"\s*\|\s*|\s+or\s+|(?<=[\"'])\s*/\s*(?=[\"'])")
_ONE_OF = re.compile(r"\bone of:?\s+(?P<options>[\w-]+(?:,\s*(?:or\s+)?[\w-]+)*(?:,?\s+or\s+[\w-]+|,\s*[\w-]+))\W*$")
"""At the end of an example's text: "<one of: low, medium, high>"."""
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


def schema_of(example: Any, *, is_near: bool = False) -> Schema:
    """Return a schema of values like an example's. is_near: whether texts without a mark may be types in words."""
    if isinstance(example, dict):
        return _object({name: schema_of(value, is_near=is_near) for name, value in example.items()})
    if isinstance(example, list):
        items = schema_of(example[0], is_near=is_near) if example else {"type": "string"}
        return {"type": "array", "items": items}
    if isinstance(example, bool):
        return {"type": "boolean"}
    if isinstance(example, int | float):
        # The number of an example says how large one is: 0 is the place of the first, 0.9 a share, 8 a score.
        low, high = min(0 if isinstance(example, float) else 1, example), max(0, example)
        is_share = isinstance(example, float) and 0 <= example <= 1
        kind = "integer" if isinstance(example, int) else "number"
        return {"type": kind, "minimum": low, "maximum": 1 if is_share else high}
    if not isinstance(example, str):
        return {"type": "string"}
    text = example.removeprefix(_MARK)
    if listed := _ONE_OF.search(text):
        return {"enum": re.split(r",?\s+or\s+|,\s*", listed["options"])}
    is_in_words = is_near and text == example
    # "yes or no", not a sentence with an "or" in it.
    word = re.compile(r"[\w' -]{1,30}" if is_in_words else r"[\w'-]{1,30}")
    options = [option.strip(" \"'`") for option in _BETWEEN_OPTIONS.split(text)]
    if len(options) < 2 or not all(map(word.fullmatch, options)):
        return described(text) if is_in_words else {"type": "string"}
    if {option.lower() for option in options} <= {"true", "false"}:
        return {"type": "boolean"}
    return {"type": "string"} if {"null", "none", "None"} & set(options) else {"enum": options}


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
            text = _bracketed(prompt[start : start + _LONGEST])
            if not text:
                continue
            schema, end = schema_of(_nearly_json(text), is_near=True), start + len(text)
        inner = schema.get("items", schema)
        if inner.get("properties") or (
            plain and schema["type"] == "array" and prompt[start + 1 :].lstrip()[:1] in "\"'"
        ):
            yield schema


def _bracketed(text: str) -> str:
    """Return a text up to the bracket that closes its first one; empty if none does, or if it goes too deep."""
    depth = 0
    for bracket in re.finditer(r"[][{}]", text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _DEEPEST:
            return ""
        if depth == 0:
            return text[: bracket.end()]
    return ""


def _nearly_json(text: str) -> Any:
    """Return a value of an example that is nearly JSON: types and choices in it become texts."""
    # In a template of Python's, each brace is there twice. Dots say that there may be more.
    single = text.replace("{{", "{").replace("}}", "}") if text.startswith("{{") else text
    try:
        return json_repair.loads(_QUOTED_VALUE.sub(rf'\1"{_MARK}\2"', _MORE.sub("", single)))
    except (ValueError, RecursionError):
        return None


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
