"""A text that matches a regular expression of a JSON schema, for the expressions that schemas have.

Understood are literals, classes, escapes, groups, alternatives and repetitions. What looks ahead or behind is left out:
a text that does not match for it is drawn anew.
"""

from __future__ import annotations

import bisect
import re
import string
from collections.abc import Callable
from typing import Final

_ESCAPES: Final = {"d": string.digits, "w": string.ascii_lowercase, "s": " ", "D": "a", "W": "-", "S": "a"}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r"}
# What is left out of a pattern may forbid a text that was drawn.
_ATTEMPTS = 20
LONGEST_TEXT: Final = 100_000
"""Characters of a text at the most; a schema that asks for a longer one is refused."""
_REPEAT = re.compile(r"\{(\d*)(,?)(\d*)\}")


def text_matching(pattern: str, draw: Callable[[str], float], shortest: int = 0) -> str:
    """Return a text that matches a pattern; the same draws give the same text.

    Args:
        pattern: A regular expression.
        draw: Returns a number in [0, 1) for a name.
        shortest: Characters of the text at least, which repetitions without an end are made longer for.
    """
    for attempt in range(_ATTEMPTS):
        text = _long_enough(pattern, lambda name, number=attempt: draw(f"{name}/{number}"), shortest)  # type: ignore[misc]
        if _matches(pattern, text):
            break
    return text


def _long_enough(pattern: str, draw: Callable[[str], float], shortest: int) -> str:
    text = _Writer(pattern, draw, 0).text()
    if len(text) >= shortest:
        return text
    # As few repetitions as it takes, since there may be a longest text too.
    lengths = range(shortest + 1)
    enough = bisect.bisect_left(lengths, shortest, key=lambda more: len(_Writer(pattern, draw, more).text()))
    return _Writer(pattern, draw, enough).text()


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # of another dialect of expressions
        return True


class _Writer:
    """Reads a pattern from left to right and writes a text. more: how often open repetitions are, beyond the least."""

    def __init__(self, pattern: str, draw: Callable[[str], float], more: int) -> None:
        self._pattern, self._draw, self._more, self._at = pattern, draw, more, 0

    def text(self) -> str:
        written = self._alternatives()
        while self._at < len(self._pattern):  # a bracket too many
            self._at += 1
            written += self._alternatives()
        return written

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1 : self._at]

    def _alternatives(self) -> str:
        choices = [self._sequence()]
        while self._peek() == "|":
            self._take()
            choices.append(self._sequence())
        return choices[int(self._draw(f"choice/{self._at}") * len(choices))]

    def _sequence(self) -> str:
        written = ""
        while self._peek() not in ("", "|", ")"):
            begun = self._at
            one = self._atom()
            ended = self._at
            least, most = self._repetition()
            times = least if most is not None and most <= least else least + self._more
            times = times if most is None else min(times, most)
            for number in range(times):
                if number:  # anew, so that each repetition has draws of its own
                    after, self._at = self._at, begun
                    draw = self._draw
                    self._draw = lambda name, inner=draw, n=number: inner(f"{name}/{n}")  # type: ignore[misc]
                    one = self._atom()
                    self._draw, self._at = draw, after
                written += one
                if len(written) > LONGEST_TEXT:
                    raise ValueError("the pattern asks for a text that is too long")
            self._at = max(self._at, ended)
        return written

    def _repetition(self) -> tuple[int, int | None]:
        least, most = 1, 1
        found: tuple[int, int | None] = (least, most)
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        counted = _REPEAT.match(self._pattern, self._at)
        if self._peek() in simple and self._peek():
            found = simple[self._take()]
        elif counted and (counted[1] or counted[3]):
            self._at = counted.end()
            low = int(counted[1] or 0)
            found = (low, int(counted[3]) if counted[3] else (None if counted[2] else low))
        else:
            return found
        if self._peek() in ("?", "+"):  # lazy, or possessive
            self._take()
        return found

    def _atom(self) -> str:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._one_of(self._class())
        if character == "\\":
            return self._escape()
        if character in "^$":
            return ""
        return self._one_of(string.ascii_lowercase) if character == "." else character

    def _group(self) -> str:
        looks = re.compile(r"\?(=|!|<=|<!)").match(self._pattern, self._at)
        opening = re.compile(r"\?(:|P?<\w+>|=|!|<=|<!)").match(self._pattern, self._at)
        if opening:
            self._at = opening.end()
        written = self._alternatives()
        self._take()
        return "" if looks else written

    def _escape(self) -> str:
        character = self._take()
        if character in "bBAZz":
            return ""
        if character in ("p", "P") and self._peek() == "{":  # a property of Unicode, such as a letter
            self._at = self._pattern.find("}", self._at) + 1
            return "a"
        if character in ("x", "u"):
            length = 2 if character == "x" else 4
            code = self._pattern[self._at : self._at + length]
            self._at += length
            return chr(int(code, 16))
        return self._one_of(_ESCAPES[character]) if character in _ESCAPES else _CONTROLS.get(character, character)

    def _one_of(self, characters: str) -> str:
        return characters[int(self._draw(f"character/{self._at}") * len(characters))] if characters else ""

    def _class(self) -> str:
        is_negated = self._peek() == "^"
        if is_negated:
            self._take()
        members, is_first = "", True
        while self._peek() and (is_first or self._peek() != "]"):
            is_first = False
            member = self._member()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", "") and len(member) == 1:
                self._take()
                last = self._member()
                member = "".join(chr(code) for code in range(ord(member), min(ord(last[:1]), ord(member) + 128) + 1))
            members += member
        self._take()
        if is_negated:
            return "".join(each for each in string.ascii_lowercase + string.digits + " -_" if each not in members)
        return members

    def _member(self) -> str:
        character = self._take()
        if character != "\\":
            return character
        escaped = self._take()
        if escaped in ("x", "u"):
            self._at -= 1
            return self._escape()
        return _ESCAPES.get(escaped, _CONTROLS.get(escaped, escaped))
