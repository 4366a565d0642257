"""Values that are valid under a JSON schema: texts from the conversation, everything else drawn by the call's key.

    value_for(schema, conversation)
    value_for(schema, conversation, name="query", answer="…")

Understood are the types, enum, const, $ref, allOf, anyOf and oneOf, what OpenAPI calls nullable, required, bounds of
numbers, lengths of texts, lists and objects, multipleOf, pattern, and the formats that are in use.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.services.scripted_model.conversation import Conversation
from docmind_lab.services.scripted_model.decisions import decide, decide_boolean, listed_in, options_in, sends_back
from docmind_lab.services.scripted_model.field_texts import LONGEST_TASK, text_for
from docmind_lab.services.scripted_model.schema_rules import bounds_of, fitted, merged, rounded, scale_of, text_matching

Schema = Mapping[str, Any]

_SCORE = re.compile(r"score|rating|confidence|quality|grade|relevance|certainty", re.IGNORECASE)
_COUNT = re.compile(r"limit|count|top_?k|max_|num|size|^[knm]$|page|offset", re.IGNORECASE)
# What a model says only where something went wrong.
_ERROR = re.compile(r"(.*_)?(errors?|exception|failure)(_(message|reason|details?))?", re.IGNORECASE)
_FINAL = re.compile(r"respon|final|finish|answer|result|done|end|complete", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_DEEPEST = 8
_WIDEST = 3
# A schema that asks for more is refused.
_MOST_VALUES = 10_000


def value_for(schema: Schema, conversation: Conversation, *, name: str = "", answer: str = "") -> Any:
    """Return a value that is valid under a schema. answer: the model's in words, for texts that are no task."""
    return _Values(schema, conversation, answer).value(schema, name, name, 0)


@dataclass
class _Values:
    root: Schema
    conversation: Conversation
    answer: str
    numbers_used: int = 0
    values_made: int = 0

    def draw(self, path: str) -> float:
        return self.conversation.key.uniform(f"value/{path}")

    def value(self, schema: Any, name: str, path: str, depth: int) -> Any:
        """Return a value for a field. path: of the field, which its draws are named after."""
        self.values_made += 1
        if self.values_made > _MOST_VALUES:
            raise ValueError("the schema asks for too many values")
        schema = self.resolve(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return decide(self.conversation, name, [each for each in schema["enum"] if each is not None] or [None])
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            return self.value(merged(rest, self.branch(branches, path, depth)), name, path, depth)
        kind = self.kind_of(schema)
        if kind == "object":
            return self.object(schema, path, depth)
        if kind == "array":
            return self.array(schema, name, path, depth)
        if kind in ("integer", "number"):
            return self.number(schema, name, path, is_whole=kind == "integer")
        if kind == "boolean":
            return decide_boolean(self.conversation, name)
        return None if kind == "null" else self.text(schema, name, path)

    # ---- the schema

    def resolve(self, schema: Any) -> dict[str, Any]:
        """Return a schema without "$ref" and "allOf" at its top."""
        if not isinstance(schema, Mapping):  # true and false
            return {}
        resolved = dict(schema)
        for _ in range(_DEEPEST):
            if isinstance(resolved.get("$ref"), str):
                reference = resolved.pop("$ref")
                resolved = merged(resolved, self.target(reference))
            elif resolved.get("allOf"):
                parts = resolved.pop("allOf")
                for part in parts:
                    resolved = merged(resolved, self.resolve(part))
            else:
                break
        return resolved

    def target(self, reference: str) -> Schema:
        """Return the part of the schema that a reference names; an empty one if there is none."""
        value: Any = self.root
        for part in reference.removeprefix("#").split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, Mapping) and part in value:
                value = value[part]
            elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            else:
                return {}
        return value if isinstance(value, Mapping) else {}

    def branch(self, branches: Sequence[Any], path: str, depth: int) -> dict[str, Any]:
        """Return one of several schemas: no null, nothing that nests when it is deep, and an end before more work."""
        schemas = [self.resolve(each) for each in branches]
        open_ones = [each for each in schemas if self.kind_of(each) != "null"] or schemas
        if depth > 2:
            plain = [each for each in schemas if self.kind_of(each) not in ("object", "array")]
            open_ones = plain or open_ones
        objects = [each for each in open_ones if self.kind_of(each) == "object"]
        ends = [each for each in objects if _FINAL.search(str(each.get("title", "")))]
        if len(objects) > 1 and ends and not sends_back(self.conversation):
            open_ones = ends
        return open_ones[int(self.draw(f"{path}/branch") * len(open_ones))]

    @staticmethod
    def kind_of(schema: Schema) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((each for each in kind if each != "null"), "null")
        if isinstance(kind, str):
            return kind
        for key, implied in _IMPLIED.items():
            if key in schema:
                return implied
        return "string"

    # ---- values

    def object(self, schema: Schema, path: str, depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        required = [name for name in schema.get("required") or () if isinstance(name, str)]
        names = [name for name in properties if name in required or depth < _WIDEST]
        # Of what may be left out, only what leads no deeper.
        names = [name for name in names if name in required or not self.is_deep(properties[name])]
        names = [name for name in names if name in required or not _ERROR.fullmatch(name)]
        names += [name for name in required if name not in names]
        extra = schema.get("additionalProperties")
        data = {
            name: self.value(properties.get(name, {}), name, f"{path}/{name}", depth + 1)
            for name in names
            if depth < _DEEPEST or name in required
        }
        least = int(schema.get("minProperties") or 0)
        if not properties and isinstance(extra, Mapping):
            least = max(least, 1)
        if extra is not False:
            free = (f"{word}_{number}" for number, word in enumerate(["field"] * (least + len(data))))
            for name in free:
                if len(data) >= least:
                    break
                data[name] = self.value(extra if isinstance(extra, Mapping) else {}, name, f"{path}/{name}", depth + 1)
        most = schema.get("maxProperties")
        if isinstance(most, int) and len(data) > most:
            data = {name: value for name, value in data.items() if name in required}
        return data

    def is_deep(self, schema: Any) -> bool:
        """Whether a schema refers to one that it stands in, so that a value could go on for ever."""
        return '"$ref"' in json.dumps(schema) and '"$ref"' in json.dumps(self.resolve_all(schema))

    def resolve_all(self, schema: Any) -> Any:
        resolved = self.resolve(schema)
        inner = [resolved.get("items"), *(resolved.get("anyOf") or ()), *(resolved.get("oneOf") or ())]
        return [self.resolve(each) for each in inner if each] or resolved

    def array(self, schema: Schema, name: str, path: str, depth: int) -> list[Any]:
        fixed = schema.get("prefixItems") or ()
        items = schema.get("items", {})
        least = int(schema.get("minItems") or 0)
        most = schema.get("maxItems")
        count = 0 if depth > _WIDEST else 1 + int(self.draw(f"{path}/length") * 2)
        length = max(least, len(fixed), count)
        length = length if most is None else min(length, int(most))
        if items is False:
            length = min(length, len(fixed))
        result: list[Any] = []
        for place in range(length * (4 if schema.get("uniqueItems") else 1)):
            if len(result) == length:
                break
            part = fixed[place] if place < len(fixed) else items
            one = self.value(part, name.removesuffix("s"), f"{path}/{place}", depth + 1)
            one = self.another(one, part, result, place) if schema.get("uniqueItems") and one in result else one
            if not schema.get("uniqueItems") or one not in result:
                result.append(one)
        return result

    def another(self, value: Any, schema: Any, items: Sequence[Any], place: int) -> Any:
        """Return another value where one like it is there already."""
        resolved = self.resolve(schema)
        if resolved.get("enum"):
            return next((each for each in resolved["enum"] if each not in items), value)
        if isinstance(value, str) and not resolved.keys() & {"pattern", "format"}:
            return fitted(f"{place} {value}", resolved)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return self.number_near(resolved, value, place)
        return value

    def number_near(self, schema: Schema, value: float, place: int) -> float:
        step = schema.get("multipleOf") or 1
        low, high = bounds_of(schema)
        for candidate in (value + place * step, value - place * step):
            if (low is None or candidate >= low) and (high is None or candidate <= high):
                return candidate
        return value

    def number(self, schema: Schema, name: str, path: str, *, is_whole: bool) -> float:
        low, high = bounds_of(schema)
        step = schema.get("multipleOf") or (1 if is_whole else None)
        drawn = self.draw(path)
        if _SCORE.search(name):
            low, high = scale_of(schema, low, high, 10 if is_whole else 1)
            target = low + (high - low) * (0.8 + 0.2 * drawn)
        elif _COUNT.search(name):
            target = (low or 0) + 1 + int(4 * drawn)
        elif (stated_number := self.number_of_task()) is not None:
            target = stated_number
        else:
            start = low if low is not None else (min(1, high - 9) if high is not None else 1)
            end = high if high is not None else start + 9
            target = start + (end - start) * drawn
        return rounded(target, low, high, step, is_whole=is_whole)

    def number_of_task(self) -> float | None:
        """Return the next number of the task, in the order in which it says them."""
        numbers = _NUMBER.findall(self.conversation.task[:LONGEST_TASK])
        self.numbers_used += 1
        return float(numbers[self.numbers_used - 1]) if self.numbers_used <= len(numbers) else None

    def text(self, schema: Schema, name: str, path: str) -> str:
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS:
            return _FORMATS[form].format(day=1 + int(self.draw(path) * 28), id=self.uuid(path))
        if isinstance(schema.get("pattern"), str):
            shortest = int(schema.get("minLength") or 0)
            return text_matching(schema["pattern"], lambda what: self.draw(f"{path}/{what}"), shortest)
        description = f"{schema.get('description', '')}"
        if options := options_in(description) or listed_in(description):
            return fitted(str(decide(self.conversation, name, options)), schema)
        return fitted(text_for(name, self.conversation, answer=self.answer, draw=self.draw(path)), schema)

    def uuid(self, path: str) -> uuid.UUID:
        bits = int(self.draw(path) * 2**53) << 64 | int(self.draw(f"{path}/low") * 2**53)
        return uuid.UUID(int=bits, version=4)


_IMPLIED: Final = {
    "properties": "object",
    "additionalProperties": "object",
    "required": "object",
    "minProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
}
_FORMATS: Final = {
    "date": "2026-01-{day:02}",
    "date-time": "2026-01-{day:02}T12:00:00Z",
    "time": "12:{day:02}:00Z",
    "duration": "P{day}D",
    "email": "user{day}@example.com",
    "uri": "https://example.com/{day}",
    "url": "https://example.com/{day}",
    "hostname": "host{day}.example.com",
    "ipv4": "192.0.2.{day}",
    "ipv6": "2001:db8::{day}",
    "uuid": "{id}",
}
