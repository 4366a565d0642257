"""How people call the alternatives, and in which order they stand: the same in tables, sentences and figures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LETTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "unguarded": "control",
        "cooperative": "A",
        "hard_timeout": "B",
        "async_cancellation": "C",
        "stop_flag": "D",
        "hybrid": "E",
        "native": "F",
    }
)
"""Letter of each alternative, in the order in which every figure has them."""


def label_of(alternative: str, options: str = "{}") -> str:
    """How people call an alternative: "A  cooperative", "control  unguarded", "B  hard timeout (naive)".

    options: the column `alternative_options`, a JSON object. One that is not ours goes by its own name.
    """
    words = alternative.replace("_", " ")
    label = f"{LETTERS[alternative]}  {words}" if alternative in LETTERS else words
    named = [_option(name, value) for name, value in json.loads(options).items()]
    return f"{label} ({', '.join(named)})" if named else label


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if isinstance(value, list | dict):
        # A table of numbers, as an allocation learned from a study; the run's options have all of it.
        return f"{name} #{hashlib.blake2b(json.dumps(value).encode(), digest_size=2).hexdigest()}"
    return f"{name}={value}"


def rank_of(alternative: str) -> int:
    """The place of an alternative in every figure; those that are not ours come last."""
    return list(LETTERS).index(alternative) if alternative in LETTERS else len(LETTERS)


def order_of(alternative: str, options: str = "{}") -> tuple[int, bool, str]:
    """A sort key: alternatives in their order, the plain one before its variants."""
    return rank_of(alternative), options != "{}", options
