"""Numbers, names and tables as text: one way to write each, in every finding, figure and report."""

from __future__ import annotations

import math

import pandas as pd


def number(value: float, digits: int) -> str:
    """The number with so many digits; a dash for one that is not there."""
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


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


def markdown_table(frame: pd.DataFrame) -> str:
    """The frame as a Markdown table, its index in the first column."""
    rows = ["| | " + " | ".join(map(str, frame.columns)) + " |", "|---|" + "---:|" * len(frame.columns)]
    for label, row in zip(frame.index, frame.to_numpy(), strict=True):
        rows.append(f"| {label} | " + " | ".join(map(str, row)) + " |")
    return "\n".join(rows)


def counted(number_of: int, noun: str) -> str:
    """So many of them: "1 run", "3 runs"."""
    return f"{number_of:,} {noun}" if number_of == 1 else f"{number_of:,} {noun}s"


def duration(value_s: float) -> str:
    """Seconds as a person says them: "2.3 s", "150 ms"."""
    return f"{value_s:.1f} s" if value_s >= 1 else f"{value_s * 1000:.0f} ms"
