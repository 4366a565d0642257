"""What a JSON schema asks of a value: schemas put together, bounds of numbers, lengths of texts, and their patterns.

A text that matches a regular expression is written by rstr from the draws of a call.
"""

from __future__ import annotations

import bisect
import math
import random
import re
import string
from collections.abc import Callable, Mapping
from typing import Any, Final

from rstr import Rstr
from rstr.xeger import STAR_PLUS_LIMIT

# A text that a look ahead or behind forbids is drawn anew.
_ATTEMPTS: Final = 20
LONGEST_TEXT: Final = 100_000
"""Characters of a text at the most; a schema that asks for a longer one is refused."""
_ALPHABETS: Final = {
    "printable": string.ascii_lowercase,
    "word": string.ascii_lowercase,
    "nonword": "-",
    "nondigits": "a",
    "whitespace": " ",
    "nonwhitespace": "a",
}
# JavaScript's names of groups, which Python writes with a P, and properties of Unicode, such as a letter.
_GROUP_NAME = re.compile(r"\(\?<(?=\w)")
_PROPERTY = re.compile(r"\\[pP]\{\^?\w+\}")


def text_matching(pattern: str, draw: Callable[[str], float], shortest: int = 0) -> str:
    """Return a text that matches a pattern; the same draws give the same text.

    draw: returns a number in [0, 1) for a name. shortest: characters of the text at least, which repetitions without an
    end are made longer for.
    Raises: ValueError: the expression cannot be read, or asks for a text that is too long.
    """
    readable = _PROPERTY.sub("a", _GROUP_NAME.sub("(?P<", pattern))
    try:
        matches = re.compile(readable).search
        for attempt in range(_ATTEMPTS):
            text = _long_enough(readable, draw(f"text/{attempt}"), shortest)
            if matches(text):
                break
    except (re.error, KeyError) as error:  # rstr knows no possessive repetition
        raise ValueError(f"the pattern {pattern!r} cannot be read") from error
    return text


def _long_enough(pattern: str, seed: float, shortest: int) -> str:
    def text(more: int) -> str:
        return Rstr(_Draws(seed, more), **_ALPHABETS).xeger(pattern)

    if len(text(0)) >= shortest:
        return text(0)
    # As few repetitions as it takes, since there may be a longest text too.
    return text(bisect.bisect_left(range(shortest + 1), shortest, key=lambda more: len(text(more))))


class _Draws(random.Random):
    """What rstr draws from: the same in every process, plain characters, and few repetitions.

    seed: from 0 to 1. more: how often open repetitions are, beyond the least.
    """

    def __init__(self, seed: float, more: int) -> None:
        super().__init__(seed)
        self._more, self._repetitions = more, 0

    def choice(self, seq: Any) -> Any:
        """Return one of several. Characters are put in order, since some come from a set."""
        if seq and all(isinstance(each, str) for each in seq):
            seq = sorted(each for each in seq if each.isalnum()) or sorted(seq)
        return super().choice(seq)

    def randint(self, a: int, b: int) -> int:
        """Return a number of repetitions, from a to b. Raises: ValueError if there are too many in all."""
        most = LONGEST_TEXT + 1 if b == STAR_PLUS_LIMIT else b  # where rstr ends what has no end
        times = max(a, min(most, a + self._more))
        self._repetitions += times
        if self._repetitions > LONGEST_TEXT:
            raise ValueError("the pattern asks for a text that is too long")
        return times


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
