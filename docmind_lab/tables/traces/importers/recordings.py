"""Recordings of the lab's live studies: a folder with `runs.jsonl` and `manifest.json`, a line for each run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.text import count_of
from docmind_lab.tables.traces.importers.records import Record
from docmind_lab.tables.traces.model import OWN_ENDS, Span, TracedRun, Traces
from docmind_lab.tables.traces.rules import CONTROLS

RUNS, MANIFEST = "runs.jsonl", "manifest.json"
_FORMAT: Final = 1


def is_recording(folder: Path) -> bool:
    """Whether a folder holds a recording."""
    return (folder / RUNS).is_file() and (folder / MANIFEST).is_file()


def read_recording(folder: Path) -> Traces:
    """Return the runs of a recording: those of its control, which nothing cut, or all if it has none.

    Raises: RecordError when the folder holds no recording, or a line cannot be read.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = manifest["recording_format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{folder} holds no recording; make one with --record on the wall clock") from error
    if version != _FORMAT:
        raise RecordError(f"{folder} was recorded by another version (format {version}); {_FORMAT} is read")
    return _traces(_records(folder / RUNS), str(folder))


def _records(file: Path) -> Iterator[Record]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                # What follows the last line end is a line that a kill has torn.
                if line.endswith("\n"):
                    yield Record.of(f"{file}, line {number}", json.loads(line))
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file} cannot be read ({error}); take it from a copy") from error
    except ValueError as error:
        raise RecordError(f"{file}, line {number}: it is not JSON ({error}); take it from a copy") from error


def _traces(records: Iterable[Record], source: str) -> Traces:
    runs: dict[bool, list[TracedRun]] = {True: [], False: []}
    spans: dict[bool, list[Span]] = {True: [], False: []}
    for record in records:
        calls = record.get("calls")
        if not isinstance(calls, list):
            raise RecordError(f'{record.where}: it is no recorded run, which is an object with a list "calls"')
        is_control = record.required("alternative") in CONTROLS
        trace_id = "/".join(
            [record.required("alternative"), record.text("alternative_options"), record.required("seed")]
        )
        trace_id = f"{trace_id}/{record.text('question_id')}"
        of_run = [_span(trace_id, Record.of(record.where, call)) for call in calls]
        runs[is_control].append(_run(trace_id, record, of_run, source))
        spans[is_control] += of_run
    chosen = bool(runs[True])
    if not runs[chosen]:
        raise RecordError(f"{source} holds no run; record again")
    total = sum(len(each) for each in spans.values())
    left_out = len(runs[not chosen])
    why = f"left out: {count_of(left_out, 'run')} with a deadline" if left_out else "none was left out"
    notes = [f"{len(spans[chosen])} of {total} calls were used; {why}."]
    if not chosen:
        notes.append("No run was recorded without a deadline, so those that theirs ended count as cut.")
    return Traces.of(runs[chosen], spans[chosen], notes=tuple(notes))


def _run(trace_id: str, record: Record, spans: list[Span], source: str) -> TracedRun:
    outcome = record.required("outcome")
    outcome = outcome if outcome in OWN_ENDS else "cut"
    returned = record.number("returned_at_s")
    last = max((span.ended_at_s for span in spans), default=0.0)
    has_returned = not math.isnan(returned)
    labels: dict[str, Any] = {"question_id": record.text("question_id"), "clock": "wall"}
    return TracedRun(
        trace_id=trace_id,
        session=record.required("seed"),
        source=source,
        ended_at_s=NAN if outcome == "cut" else returned,
        observed_until_s=max(returned, last) if has_returned else record.required_number("horizon_s"),
        outcome=outcome,
        limit_s=record.number("decision_timeout_s") if outcome == "cut" and has_returned else NAN,
        labels=json.dumps(labels),
    )


def _span(trace_id: str, call: Record) -> Span:
    wait = call.number("queue_wait_s")
    return Span(
        trace_id=trace_id,
        span_id=f"{call.required('call_id')}#{int(call.required_number('attempt'))}",
        parent_id="",
        role=call.text("role"),
        kind=call.required("kind"),
        started_at_s=call.required_number("started_at_s"),
        ended_at_s=call.required_number("ended_at_s"),
        first_byte_at_s=call.number("first_byte_at_s"),
        outcome=call.required("end"),
        attempt=int(call.required_number("attempt")),
        input_tokens=call.number("input_tokens"),
        output_tokens=call.number("output_tokens"),
        queue_wait_s=0.0 if math.isnan(wait) else wait,
    )
