"""A text that matches a regular expression of a JSON schema, written by rstr from the draws of a call."""

from __future__ import annotations

import bisect
import random
import re
import string
from collections.abc import Callable
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
