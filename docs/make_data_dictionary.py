"""Prints docs/data-dictionary.md, each workload's own tables and events included.

python docs/make_data_dictionary.py > docs/data-dictionary.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.kinds import WORKLOADS, workload_kind
from docmind_lab.tables.dictionary import column_table, common_dictionary, event_table


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
