"""The line of a prompt that says how much time is left, and what a reader of the prompt learns from it.

time_left_line("seconds", 4.2, 20.0)           # "Time left: 4.2 s of 20 s."
time_left_line("words", 4.2, 20.0)             # "Time left: almost none."
share_left("… Time left: 4.2 s of 20 s.")      # 0.21
"""

from __future__ import annotations

import re
from typing import Final, Literal, get_args

TellingStyle = Literal["seconds", "words", "thresholds"]
TELLING_STYLES: Final[tuple[TellingStyle, ...]] = get_args(TellingStyle)
"""seconds: the seconds left, every time. words: plenty, little or almost none. thresholds: only below a half."""

_HALF, _QUARTER = 0.5, 0.25
# Of what is left when the line says only so much: the most that it can be.
_SHARE_OF_WORDS: Final = {
    "plenty": 1.0,
    "little": _HALF,
    "almost none": _QUARTER,
    "less than half": _HALF,
    "less than a quarter": _QUARTER,
}
_LINE = re.compile(r"^Time left: (?:(?P<left>[\d.]+) s of (?P<limit>[\d.]+) s|(?P<words>[a-z ]+))\.$", re.MULTILINE)


def time_left_line(style: TellingStyle, left_s: float, limit_s: float) -> str:
    """Return the line that tells a model how much time is left; empty if nothing is told yet.

    Args:
        style: How it is told.
        left_s: Seconds left.
        limit_s: Seconds that there were.
    """
    share = left_s / limit_s
    if style == "seconds":
        return f"Time left: {max(0.0, left_s):.1f} s of {limit_s:g} s."
    if style == "words":
        said = "plenty" if share >= _HALF else "little" if share >= _QUARTER else "almost none"
    else:
        said = "" if share >= _HALF else "less than half" if share >= _QUARTER else "less than a quarter"
    return said and f"Time left: {said}."


def share_left(text: str) -> float | None:
    """Return the share of the time that a prompt says is left; of words, the most that they can mean.

    Args:
        text: A system prompt.

    Returns:
        None for a prompt without such a line.
    """
    found = _LINE.search(text)
    if found is None:
        return None
    if found["words"]:
        return _SHARE_OF_WORDS.get(found["words"])
    limit_s = float(found["limit"])
    return float(found["left"]) / limit_s if limit_s else 0.0
