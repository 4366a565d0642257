"""Prints docs/data-dictionary.md, each workload's own tables and events included.

python docs/make_data_dictionary.py > docs/data-dictionary.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping

from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.text import markdown_table
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.workload_by_name import WORKLOADS, workload_kind
from docmind_lab.tables.records import DTYPES, EVENTS, TABLES, Column


def column_table(columns: Iterable[Column]) -> str:
    """Return columns with their dtypes and meanings as a Markdown table."""
    rows = []
    for column in columns:
        levels = f" Levels: {', '.join(level or '(empty)' for level in column.levels)}." if column.levels else ""
        rows.append((f"`{column.name}`", DTYPES[column.kind], f"{column.meaning}{levels}"))
    return markdown_table(("column", "dtype", "meaning"), rows, left=range(3))


def event_table(events: Mapping[str, str]) -> str:
    """Return events with their meanings as a Markdown table."""
    return markdown_table(("event", "meaning"), ((f"`{name}`", text) for name, text in events.items()), left=range(2))


def common_dictionary() -> str:
    """Return the tables, columns, units and events as Markdown."""
    lines = [
        "# Data dictionary",
        "",
        f"Schema version {SCHEMA_VERSION}. Written by `make docs` from the code; do not edit.",
        "Names ending in `_at_s` are instants in seconds since the run's start, `_s` durations in seconds.",
    ]
    for table, (record_type, columns) in TABLES.items():
        first_line = (record_type.__doc__ or "").strip().splitlines()[0]
        lines += ["", f"## `{table}`", "", first_line, "", column_table(columns)]
    return "\n".join([*lines, "", "## Events", "", event_table(EVENTS)]) + "\n"


def whole_dictionary() -> str:
    """Return the tables, columns, units and events as Markdown; those of each workload come last."""
    lines = [common_dictionary().rstrip()]
    for name in WORKLOADS:
        lines += _workload_dictionary(workload_kind(name))
    return "\n".join(lines) + "\n"


def _workload_dictionary(kind: WorkloadKind) -> Iterator[str]:
    if not kind.tables and not kind.events:
        return
    yield from ("", f"# Workload `{kind.name}`: {kind.title}")
    for table in kind.tables:
        yield from ("", f'## `study.table("{table.name}")`', "", table.meaning, "", column_table(table.columns))
    if kind.events:
        yield from ("", f"## Events of `{kind.name}`", "", event_table(kind.events))


if __name__ == "__main__":
    sys.stdout.write(whole_dictionary())
