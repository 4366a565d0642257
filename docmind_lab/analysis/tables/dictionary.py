"""What the tables, their columns and the events mean, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from docmind_lab.analysis.tables.columns import DTYPES, TABLES, Column
from docmind_lab.analysis.tables.events import EVENTS
from docmind_lab.core.levels import SCHEMA_VERSION


def column_rows(columns: Iterable[Column]) -> list[str]:
    """Columns as the lines of a Markdown table."""
    lines = ["| column | dtype | meaning |", "|---|---|---|"]
    for column in columns:
        levels = f" Levels: {', '.join(level or '(empty)' for level in column.levels)}." if column.levels else ""
        lines.append(f"| `{column.name}` | {DTYPES[column.kind]} | {column.meaning}{levels} |")
    return lines


def common_dictionary() -> str:
    """The tables, columns, units and events as Markdown."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {SCHEMA_VERSION}. Written by `make docs` from the code; do not edit.",
        "Names ending in `_at_s` are instants in seconds since the run's start, `_s` durations in seconds.",
    ]
    for table, (record_type, columns) in TABLES.items():
        first_line = (record_type.__doc__ or "").strip().splitlines()[0]
        lines += ["", f"## `{table}`", "", first_line, "", *column_rows(columns)]
    lines += ["", "## Events", "", "| event | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in EVENTS.items()]
    return "\n".join(lines) + "\n"
