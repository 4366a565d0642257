"""Trajectories of agents, as a table of their steps with the instant of each response.

Columns: instance, resolved, exit_status, step, at_s, input_tokens, output_tokens; one row per step. Source: the table
made of mini-swe-agent with Gemini 3 Pro on SWE-bench Verified (gruckion/mini-swe-agent, MIT), 2025.

A run is one trajectory. It begins with its first response, because when that was asked for is not in the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from docmind_lab.core.errors import RecordError
from docmind_lab.core.text import count_of
from docmind_lab.tables.traces.importers.export_records import Record
from docmind_lab.tables.traces.trace_tables import Span, TracedRun, Traces

_COLUMNS: Final = frozenset({"instance", "resolved", "step", "at_s"})
_ANSWERED: Final = "submitted"
_CUT: Final = ("limitsexceeded", "timeout", "timeoutexceeded")
"""Exit statuses of mini-swe-agent: it gave an answer, or a limit ended it. With any other it failed."""


def is_trajectories(record: Record) -> bool:
    """Whether a record is a step of a trajectory."""
    return record.values.keys() >= _COLUMNS


def read_trajectories(records: Iterable[Record], source: str) -> Traces:
    """Return trajectories as runs; those with one step only are left out, because they have no length.

    Raises: RecordError for a row that cannot be read, and when there is no trajectory of two steps.
    """
    rows: dict[str, list[Record]] = {}
    for record in records:
        rows.setdefault(record.required("instance"), []).append(record)
    runs: list[TracedRun] = []
    spans: list[Span] = []
    short = 0
    for instance, steps in rows.items():
        if len(steps) < 2:
            short += 1
            continue
        of_run = _steps(instance, steps)
        runs.append(_run(instance, steps[-1], of_run[-1].ended_at_s, source))
        spans += of_run
    if not runs:
        raise RecordError(f"{source} has no trajectory of two steps or more; export all steps with their instants")
    total = sum(map(len, rows.values()))
    ends = f"left out: {count_of(short, 'run')} of one step" if short else "none was left out"
    notes = (
        f"{len(spans)} of {total} steps have a length, from the response before to their own; {ends}.",
        "A run begins with its first response.",
        "When a call or a tool began is not known: a step is both, and what would be left behind cannot be said.",
    )
    return Traces.of(runs, spans, notes=notes)


def _steps(instance: str, records: list[Record]) -> list[Span]:
    spans: list[Span] = []
    at_s = [record.required_number("at_s") for record in records]
    for record, begun, ended in zip(records[1:], at_s, at_s[1:], strict=False):
        if ended < begun:
            raise RecordError(f"{record.where}: at_s is {ended:g}, before that of the step before ({begun:g}); sort it")
        spans.append(
            Span(
                trace_id=instance,
                span_id=f"step/{int(record.required_number('step'))}",
                parent_id="",
                role="agent",
                kind="step",
                started_at_s=begun - at_s[0],
                ended_at_s=ended - at_s[0],
                input_tokens=record.number("input_tokens"),
                output_tokens=record.number("output_tokens"),
            )
        )
    return spans


def _run(instance: str, last: Record, ended_at_s: float, source: str) -> TracedRun:
    resolved = last.number("resolved")
    if resolved not in (0.0, 1.0) and not math.isnan(resolved):
        raise RecordError(f"{last.where}: resolved must be 0 or 1: got {resolved:g}")
    status = last.text("exit_status").lower()
    outcome = "answered" if status == _ANSWERED or not status else "cut" if status in _CUT else "failed"
    return TracedRun(
        trace_id=instance,
        session=instance,
        source=source,
        ended_at_s=math.nan if outcome == "cut" else ended_at_s,
        observed_until_s=ended_at_s,
        outcome=outcome,
        succeeded=resolved,
    )
