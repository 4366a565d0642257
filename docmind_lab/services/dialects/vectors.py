"""The embedding of a text: near for texts that share words, the same for the same text, of any size.

Each word is hashed to some places of the vector, with a sign; the sum has length 1. No model, no tokenizer is needed.
"""

from __future__ import annotations

import array
import hashlib
import math
import re
from collections import Counter
from functools import lru_cache
from typing import Final

from docmind_lab.services.scripted_model.extraction import content_words

_WORD = re.compile(r"\w+")
# Of so many places, two words share few by accident, and a long vector is not empty.
_PLACES_OF_A_WORD = 16
_SIZE_OF_MODEL: Final = {
    "text-embedding-3-large": 3072,
    "text-embedding-3-small": 1536,
    "text-embedding-ada-002": 1536,
    "text-embedding-004": 768,
    "gemini-embedding": 3072,
    "mxbai-embed-large": 1024,
    "bge-m3": 1024,
    "all-minilm": 384,
    "nomic-embed-text": 768,
}
DEFAULT_SIZE: Final = 1536


def size_of(model: str) -> int:
    """Return how many numbers a vector of this model has; `DEFAULT_SIZE` for a model that is not known."""
    return next((size for name, size in _SIZE_OF_MODEL.items() if name in model), DEFAULT_SIZE)


def vector_of(text: str, size: int) -> tuple[float, ...]:
    """Return the vector of a text. size: how many numbers it has."""
    words = Counter(content_words(text)) or Counter(_WORD.findall(text.lower())) or Counter([text])
    sums = [0.0] * size
    for word, times in words.items():
        for place, sign in _places(word):
            sums[place % size] += sign * math.sqrt(times)
    length = math.sqrt(math.fsum(value * value for value in sums))
    if length == 0:  # words that cancel each other, in a short vector
        sums[0], length = 1.0, 1.0
    # As 32-bit floats, so that a vector is the same in JSON and in base64.
    return tuple(array.array("f", (value / length for value in sums)))


@lru_cache(maxsize=20_000)
def _places(word: str) -> tuple[tuple[int, int], ...]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=4 * _PLACES_OF_A_WORD).digest()
    numbers = [int.from_bytes(digest[start : start + 4]) for start in range(0, len(digest), 4)]
    return tuple((number >> 1, 1 if number & 1 else -1) for number in numbers)
