"""Numbers, names and tables as text: one way to write each, in every finding, figure and report."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import pandas as pd


def number(value: float, digits: int, absent: str = "–") -> str:
    """The number with so many digits; a dash for one that is not there."""
    return absent if math.isnan(value) else f"{value:.{digits}f}"


def level(value: object) -> str:
    """A level of a factor: a number without zeros at its end, anything else as it is."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def p_text(value: float) -> str:
    """A p value: "0.012", "< 0.001"."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def percent(share: float, digits: int = 0) -> str:
    """A share of 1 in percent; a dash for one that is not there."""
    return "–" if math.isnan(share) else f"{share:.{digits}%}"


def bracketed(value: float, low: float, high: float, digits: int) -> str:
    """A value with its interval: "9.9 [9.7, 10.0]"."""
    return number(value, digits) if math.isnan(low) else f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def one_line(label: str) -> str:
    """A label without the spaces that set its letter apart in tables: "A cooperative"."""
    return " ".join(str(label).split())


def joined(names: list[str], last: str = "and") -> str:
    """Names in a sentence: "A, B and C"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}" if names else "none"


def markdown_table(headings: Sequence[str], rows: Iterable[Iterable[object]], left: Collection[int] = (0,)) -> str:
    """A Markdown table.

    Args:
        headings: Of the columns.
        rows: The cells of each row, free of Markdown.
        left: Places of the columns that are words; the others are numbers, set to the right.
    """
    head = "|" + "".join(f" {heading} |" if heading else " |" for heading in headings)
    rule = "|" + "".join("---|" if place in left else "---:|" for place in range(len(headings)))
    return "\n".join([head, rule, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def markdown_of_frame(frame: pd.DataFrame) -> str:
    """A frame as a Markdown table, its index in the first column."""
    rows = ([label, *row] for label, row in zip(frame.index, frame.to_numpy(), strict=True))
    return markdown_table(["", *map(str, frame.columns)], rows)


def counted(number_of: int, noun: str) -> str:
    """So many of them: "1 run", "3 runs"."""
    return f"{number_of:,} {noun}" if number_of == 1 else f"{number_of:,} {noun}s"


def duration(value_s: float) -> str:
    """Seconds as a person says them: "2.3 s", "150 ms"."""
    return f"{value_s:.1f} s" if value_s >= 1 else f"{value_s * 1000:.0f} ms"
