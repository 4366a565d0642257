"""Prints docs/data-dictionary.md, each workload's own tables and events included."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from docmind_lab.analysis.tables import EVENTS, SCHEMA_VERSION, TABLES, Column
from docmind_lab.analysis.tables.columns import DTYPES
from docmind_lab.workloads import WORKLOADS, WorkloadKind, workload_kind


def whole_dictionary() -> str:
    """The tables, columns, units and events as Markdown; those of each workload after those of all."""
    lines = [common_dictionary().rstrip()]
    for name in WORKLOADS:
        lines += _of(workload_kind(name))
    return "\n".join(lines) + "\n"


def _of(kind: WorkloadKind) -> Iterator[str]:
    if not kind.tables and not kind.events:
        return
    yield from ("", f"# Workload `{kind.name}`: {kind.title}")
    for table in kind.tables:
        yield from ("", f'## `study.table("{table.name}")`', "", table.meaning, "", *_column_rows(table.columns))
    if kind.events:
        yield from ("", f"## Events of `{kind.name}`", "", "| event | meaning |", "|---|---|")
        yield from (f"| `{name}` | {meaning} |" for name, meaning in kind.events.items())


def _column_rows(columns: Iterable[Column]) -> list[str]:
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
        lines += ["", f"## `{table}`", "", first_line, "", *_column_rows(columns)]
    lines += ["", "## Events", "", "| event | meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in EVENTS.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(whole_dictionary())
