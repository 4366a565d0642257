"""Numbers and texts of other tools' exports that Python takes and tables do not."""

from __future__ import annotations

import json
from typing import Final

# What has more digits is larger than any float.
_MOST_DIGITS = 308


def _whole_number(text: str) -> float:
    return int(text) if len(text) <= _MOST_DIGITS else float(text)


DECODER: Final = json.JSONDecoder(parse_int=_whole_number)
"""Decodes JSON; a whole number that no float can hold is infinite, as 1e400 is."""


def well_formed(text: str) -> str:
    """Return a text with a question mark for each half of a UTF-16 pair, which no file can hold.

    Args:
        text: Any text, such as JSON writes as "\\ud800".
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
