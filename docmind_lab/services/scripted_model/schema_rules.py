"""What a JSON schema asks of a value: schemas put together, bounds of numbers, lengths of texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from docmind_lab.services.scripted_model.patterns import LONGEST_TEXT

Schema = Mapping[str, Any]

_SCALE = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)\s*(?:-|–|to|and)\s*(\d+(?:\.\d+)?)(?![\d.])")


def merged(first: Schema, second: Schema) -> dict[str, Any]:
    """Return a schema that holds what two schemas ask for together."""
    result = dict(first)
    for key, value in second.items():
        if key not in result:
            result[key] = value
        elif key == "properties":
            mine = result[key]
            result[key] = {**value, **mine} | {
                name: {"allOf": [mine[name], value[name]]}
                for name in mine
                if name in value and mine[name] != value[name]
            }
        elif key == "required":
            result[key] = [*result[key], *(name for name in value if name not in result[key])]
        elif key == "enum":
            result[key] = [each for each in result[key] if each in value]
        elif key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
            result[key] = max(result[key], value)
        elif key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
            result[key] = min(result[key], value)
        elif key == "type" and value == "integer":
            result[key] = value
        elif key in ("anyOf", "oneOf", "allOf"):
            result["allOf"] = [*result.get("allOf", ()), {key: value}] if key != "allOf" else [*result[key], *value]
    return result


def bounds_of(schema: Schema) -> tuple[float | None, float | None]:
    """Return the least and the largest number that a schema allows; None for no bound."""
    low, high = schema.get("minimum"), schema.get("maximum")
    step = 1 if schema.get("type") == "integer" else None
    under, over = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if under is True:
        under, low = low, None
    if over is True:
        over, high = high, None
    if isinstance(under, int | float) and not isinstance(under, bool):
        beyond = math.floor(under) + 1 if step else math.nextafter(under, math.inf)
        low = beyond if low is None else max(low, beyond)
    if isinstance(over, int | float) and not isinstance(over, bool):
        below = math.ceil(over) - 1 if step else math.nextafter(over, -math.inf)
        high = below if high is None else min(high, below)
    return low, high


def scale_of(schema: Schema, low: float | None, high: float | None, most: float) -> tuple[float, float]:
    """Return the scale of a score: its bounds, else what its description says ("from 1 to 10"), else up to `most`."""
    match = _SCALE.search(str(schema.get("description", "")))
    if match and float(match[1]) < float(match[2]):
        low = float(match[1]) if low is None else low
        high = float(match[2]) if high is None else high
    low = 0.0 if low is None else low
    return low, max(low, most) if high is None else high


def rounded(target: float, low: float | None, high: float | None, step: float | None, *, is_whole: bool) -> float:
    """Return the number nearest to the wanted one that is a multiple of the step and within the bounds."""
    target = target if low is None else max(target, low)
    target = target if high is None else min(target, high)
    if step is None:
        near = round(target, 3)
        fits = (low is None or near >= low) and (high is None or near <= high)
        return near if fits else target
    number = math.floor(target / step)
    while low is not None and number * step < low:
        number += 1
    while high is not None and number * step > high:
        number -= 1
    multiple = number * step
    return int(multiple) if is_whole else float(multiple)


def fitted(text: str, schema: Schema) -> str:
    """Return a text that is as long as a schema asks for: cut, or repeated."""
    shortest, longest = schema.get("minLength") or 0, schema.get("maxLength")
    if shortest > LONGEST_TEXT:
        raise ValueError("the schema asks for a text that is too long")
    if len(text) < shortest:
        text = (f"{text} " if text else "text ") * (int(shortest) // (len(text) + 1) + 1)
    return text if longest is None or len(text) <= longest else text[: int(longest)]
