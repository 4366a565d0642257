"""The simulated model's own tokenizer: a token is a word or a punctuation mark."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\w+|[^\w\s]")


@functools.lru_cache(maxsize=8192)
def count_tokens(text: str) -> int:
    """Count the words and punctuation marks in a text."""
    return len(_TOKEN.findall(text))


def pieces_of(text: str) -> Iterator[str]:
    """Yield the tokens of a text, each with the white space before it."""
    position = 0
    for match in _TOKEN.finditer(text):
        yield text[position : match.end()]
        position = match.end()


def first_tokens(text: str, limit: int) -> str:
    """Return a text up to the end of so many tokens; all of it if it has no more."""
    ends = [match.end() for match in _TOKEN.finditer(text)]
    return text if len(ends) <= limit else text[: ends[limit - 1]]
