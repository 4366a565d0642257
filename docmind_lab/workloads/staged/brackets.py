"""Where a bracket in a damaged text closes: the one thing that has to be known before a text is repaired.

A quote ends a string only where something of JSON follows it, and begins one only where a value or a key may stand, so
that quotes inside a text, apostrophes and missing commas do not turn the rest inside out.
"""

from __future__ import annotations

import re

_CLOSERS = {"{": "}", "[": "]"}
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_AFTER_STRING = frozenset(",:}]\"'“/#")
_BEFORE_STRING = frozenset("{[,:}]")
_PLAUSIBLE = re.compile(
    r"\{\s*(?:[\"'“][^\"'”:{}]*(?:[\"'”]\s*(?::|$)|$)|[A-Za-z_]\w*\s*(?::|$)|//|$)|\[\s*(?:[{\[]|$)"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def looks_like_json(text: str, begin: int) -> bool:
    """Whether what begins at a bracket could be an object with keys, or an array of brackets, as far as it goes."""
    return _PLAUSIBLE.match(text, begin) is not None


def closing_of(text: str, begin: int) -> int | None:
    """The position after the bracket that closes the one at `begin`; None if it never closes."""
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
    """The position after the quote that ends the string which begins here; None if none does."""
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
