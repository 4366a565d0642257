"""Prints docs/data-dictionary.md, each workload's own tables and events included."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from docmind_lab.analysis.tables.dictionary import column_rows, common_dictionary
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
        yield from ("", f'## `study.table("{table.name}")`', "", table.meaning, "", *column_rows(table.columns))
    if kind.events:
        yield from ("", f"## Events of `{kind.name}`", "", "| event | meaning |", "|---|---|")
        yield from (f"| `{name}` | {meaning} |" for name, meaning in kind.events.items())


if __name__ == "__main__":
    sys.stdout.write(whole_dictionary())
