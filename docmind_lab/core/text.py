"""Numbers, names and tables as text, in one style for every finding, figure and report."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final


def number(value: float, digits: int, absent: str = "–") -> str:
    """Format a number with this many digits; a dash for NaN."""
    return absent if math.isnan(value) else f"{value:.{digits}f}"


def level(value: object) -> str:
    """Format a level of a factor: a number without trailing zeros, anything else unchanged."""
    return f"{value:g}" if isinstance(value, float) else str(value)


_UNITS: Final = {"_at_s": " at (s)", "_s": " (s)"}


def heading(column: str) -> str:
    """Return the name of a column in words, its unit in brackets; "arm" for the label of one."""
    for ending, unit in _UNITS.items():
        if column.endswith(ending):
            return f"{column.removesuffix(ending).replace('_', ' ')}{unit}"
    return "arm" if column == "label" else column.replace("_", " ")


def p_text(value: float) -> str:
    """Format a p value: "0.012", "< 0.001"."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def percent(share: float, digits: int = 0) -> str:
    """Format a share of 1 in percent; a dash for NaN."""
    return "–" if math.isnan(share) else f"{share:.{digits}%}"


def with_interval(value: float, low: float, high: float, digits: int) -> str:
    """Format a value with its interval: "9.9 [9.7, 10.0]"."""
    return number(value, digits) if math.isnan(low) else f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def one_line(label: str) -> str:
    """Return a label without the spaces that align its letter in tables: "A cooperative"."""
    return " ".join(str(label).split())


def join_names(names: list[str], last: str = "and") -> str:
    """Join names in a sentence: "A, B and C"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}" if names else "none"


# How LangGraph names the node of an error handler.
_HANDLER = "__error_handler__"
_DEFAULT_HANDLER = "__default_error_handler__"


def node_in_words(node: str) -> str:
    """Name a node of a user's graph in a sentence: "node plan", "the error handler of node plan"."""
    if node.startswith(_HANDLER):
        return f"the error handler of node {node.removeprefix(_HANDLER)}"
    return "the default error handler" if node == _DEFAULT_HANDLER else f"node {node}"


def markdown_table(headings: Sequence[str], rows: Iterable[Iterable[object]], left: Collection[int] = (0,)) -> str:
    """Format a Markdown table.

    rows: the cells of each row, free of Markdown. left: places of the columns that are words; the others are numbers,
    set to the right.
    """
    head = "|" + "".join(f" {heading} |" if heading else " |" for heading in headings)
    rule = "|" + "".join("---|" if place in left else "---:|" for place in range(len(headings)))
    return "\n".join([head, rule, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def count_of(number_of: int, noun: str) -> str:
    """Format a count with its noun: "1 run", "3 runs"."""
    return f"{number_of:,} {noun}" if number_of == 1 else f"{number_of:,} {noun}s"


_OPTION: Final = re.compile(r"(?P<name>--[a-z][a-z-]*)(?: (?P<value>[\w.:=/@+-]*\w))?")
# An option that says what is printed has no keyword.
_SPELLED_OUT: Final = {
    "--verbose lists it": "study.report() lists it",
    "--resume (resume=[...])": "resume=[...]",
}
# Options that are fields of a world in Python.
_OF_A_WORLD: Final = ("clock", "faults", "latencies", "server")


def in_python(line: str) -> str:
    """Return a line of advice that names options of the command line with the keywords of Python in their place.

    "Add --runs 24" becomes "Add runs=24". What follows a command's name stays: it is to be typed as it is.
    """
    for option, keyword in _SPELLED_OUT.items():
        line = line.replace(option, keyword)

    def keyword_of(option: re.Match[str]) -> str:
        name, value = option["name"].removeprefix("--"), option["value"]
        if value is None or "docmind-lab" in line[: option.start()].rpartition(". ")[2]:
            return option[0]
        keyword = f"{name.replace('-', '_')}={value if value.isdigit() else repr(value)}"
        return f"world=dl.World({keyword})" if name in _OF_A_WORLD else keyword

    return _OPTION.sub(keyword_of, line)


def duration(value_s: float) -> str:
    """Format seconds for people: "2.3 s", "150 ms"."""
    return f"{value_s:.1f} s" if value_s >= 1 else f"{value_s * 1000:.0f} ms"


def guessed_shape(node: str) -> str:
    """Return that the simulated model guessed the shape of its answer to a node, and what would say it."""
    return (
        f"the simulated model guessed in which shape {node} wants the answer, from the words of the prompt: "
        "with_structured_output, a tool or an example of the JSON declares it."
    )
