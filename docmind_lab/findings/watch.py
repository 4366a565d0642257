"""Whether production behaves as a study said: its enforced calls as a table of runs, beside the study's.

    result = watch(Study.load("my-study"), read_enforced_calls(["traces.jsonl"]))
    result               # whether callers are answered less often, or wait longer, than the study said
    result.effects       # each alternative, limit and measure: production − study, with intervals

`findings.diff` compares the two tables. The calls are read from spans: the file exporter of OpenTelemetry's collector
writes OTLP JSON, one document a line, and an enforced call is a span of
`docmind_lab.alternatives.enforcement.call_telemetry`. Source: OpenTelemetry Protocol File Exporter (in development,
2026).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import CallerLeft, ConfigurationError, RecordError
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.telemetry_names import (
    INVOKE_WORKFLOW,
    OPERATION,
    REMAINING_AT_START,
    REQUESTS_CUT,
    RUN_ATTRIBUTES,
    THREADS_RUNNING,
    WORKFLOW,
)
from docmind_lab.core.text import count_of, join_names, percent
from docmind_lab.findings.diff import StudyDiff, diff_of_runs
from docmind_lab.findings.study import Study
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import require_one_condition
from docmind_lab.tables.frames import blank_row
from docmind_lab.tables.records import TABLES
from docmind_lab.tables.traces.importers.export_records import Record, files_of, records_of
from docmind_lab.tables.traces.importers.otlp import attributes_of, plain_spans

# Column → the attribute of the span, and what stands for one that is missing; None where a call must have it.
_COLUMNS: Final[Mapping[str, tuple[str, str | float | None]]] = {
    "workload": (WORKFLOW, ""),
    "alternative": (RUN_ATTRIBUTES["alternative"], None),
    "alternative_options": (RUN_ATTRIBUTES["alternative_options"], "{}"),
    "outcome": (RUN_ATTRIBUTES["outcome"], None),
    "stop_reason": (RUN_ATTRIBUTES["stop_reason"], ""),
    "decision_timeout_s": (REMAINING_AT_START, None),
    "caller_overrun_s": (RUN_ATTRIBUTES["caller_overrun_s"], None),
    "requests_cut": (REQUESTS_CUT, 0.0),
    "threads_left": (THREADS_RUNNING, 0.0),
}
_NUMBERS: Final = ("decision_timeout_s", "caller_overrun_s", "requests_cut", "threads_left")


def read_enforced_calls(paths: Iterable[str | os.PathLike[str]]) -> pd.DataFrame:
    """Return the enforced calls in files of spans as a table of runs, one row a call.

    A span that is in two files is one call. Spans of anything else are passed over, those of the lab's own runs too.
    A last line that the collector has not finished is passed over.

    Args:
        paths: Files of OTLP JSON, or folders of them.

    Returns:
        The columns of `runs`, blank where a span does not say it. decision_timeout_s is what was left when the call
        began, seconds; workload is the name of the graph. One column more: requests_cut, a count.

    Raises:
        ConfigurationError: A file is not there or cannot be read, or none has an enforced call.
    """
    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    files: list[Path] = []
    try:
        for path in map(Path, paths):
            if not path.exists():
                raise ConfigurationError(f"{path} cannot be read: there is no such file or folder")
            files += files_of(path)
        for file in files:
            for span in (span for record in _whole_records(file) for span in plain_spans(record)):
                row = _call_of(span, str(file))
                if row is not None:
                    rows[(span.get("traceId"), span.get("spanId"))] = row
    except RecordError as error:
        raise ConfigurationError(str(error)) from error
    if not rows:
        named = ", ".join(map(str, files[:3])) + (" …" if len(files) > 3 else "")
        raise ConfigurationError(
            f"no span of an enforced call is in {named}; give enforce() on_result=CallTelemetry('name'), and its spans"
        )
    return runs_of_calls(rows.values())


def runs_of_calls(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return calls as a table of runs. rows: what is known of each call, by the names of columns."""
    calls = pd.DataFrame([{**blank_row(TABLES["runs"][1]), **row} for row in rows])
    is_in_time = (calls["outcome"] == "answered") & (calls["caller_overrun_s"] <= 0.0)
    return calls.assign(answered_in_time=is_in_time)


def _whole_records(file: Path) -> Iterator[Record]:
    """Yield the records of a file, without a last line that is still being written."""
    try:
        yield from records_of(file)
    except RecordError as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            raise
        with file.open(encoding="utf-8-sig") as lines:
            *_, (number, last) = enumerate(lines, start=1)
        if number == 1 or last.endswith("\n") or f"line {number}:" not in str(error):
            raise


def _call_of(span: Mapping[str, Any], source: str) -> dict[str, Any] | None:
    """Return the row of a span; None for one of anything but an enforced call."""
    try:
        attributes = attributes_of(span.get("attributes"))
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{source}: a span's attributes cannot be read; give OTLP JSON") from error
    if attributes.get(OPERATION) != INVOKE_WORKFLOW or REMAINING_AT_START not in attributes:
        return None
    row: dict[str, Any] = {}
    for column, (name, otherwise) in _COLUMNS.items():
        value = attributes.get(name, otherwise)
        if value is None:
            raise ConfigurationError(
                f"{source}: a call's span has no {name}; a processor of the collector may remove it"
            )
        try:
            row[column] = float(value) if column in _NUMBERS else str(value)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{source}: {name} of a call is {value!r}, not a number; write it again"
            ) from error
    return row


LIMIT_WITHIN: Final = 0.02
"""The part of a limit by which a call's may differ: what a hop takes off the time that it was given."""

_MEASURES: Final = ("answered_in_time", "caller_overrun_s")


def watch(study: Study, calls: pd.DataFrame) -> StudyDiff:
    """Return whether production behaves as a study said.

    The calls of each alternative with each limit are set beside the study's runs with that limit. Runs with a fault are
    left out where there are runs without one. Calls that wait for a person, and those whose caller left, are not
    counted: no deadline ended them. A wait past the deadline up to `HELD_WITHIN_S` counts as none on both sides.

    Args:
        study: A study of one condition, apart from its decision timeouts.
        calls: As `read_enforced_calls` returns them.

    Raises:
        ConfigurationError: The calls are of several graphs, or the study's runs of several conditions.
    """
    workflows = sorted(set(calls["workload"]))
    if len(workflows) > 1:
        raise ConfigurationError(
            f"the spans are of {len(workflows)} graphs ({', '.join(workflows)}); choose one with --workflow"
        )
    runs = _one_condition(study.runs)
    waited = calls["outcome"] == "interrupted"
    left = (calls["stop_reason"] == CallerLeft.stop_reason) & ~waited
    compared = calls[~(waited | left)]
    compared = compared.assign(decision_timeout_s=_nearest_limits(runs, compared))
    result = diff_of_runs(_held(runs), _held(compared), ["decision_timeout_s"], _MEASURES)
    notes = [_cut_words(compared)] if len(compared) else []
    counts = {"that waited for a person": int(waited.sum()), "whose caller left": int(left.sum())}
    uncounted = [f"{count_of(count, 'call')} {words}" for words, count in counts.items() if count]
    notes += [f"Not counted: {join_names(uncounted)}."] if uncounted else []
    if result.only_after:
        notes.append("To measure what only production ran: docmind-lab compare, with its alternatives and timeout.")
    if (runs["clock"].astype("str") == "virtual").any():
        notes.append("The study ran in virtual time, so its overruns have no delays of a machine.")
    of_graph = f" of {workflows[0]}" if workflows[0] else ""
    title = f"{count_of(len(calls), 'enforced call')}{of_graph} beside study {study.manifest.get('study_id', '')}."
    return dataclasses.replace(result, sides=("the study", "production"), title=title, notes=tuple(notes))


def _one_condition(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs without a fault, or all where each has one. Raises: ConfigurationError for none, or several."""
    if runs.empty:
        raise ConfigurationError("the study has no runs to set the calls beside; give one that has")
    without = runs[runs["fault"].astype("str") == "none"]
    runs = without if len(without) else runs
    require_one_condition(runs, "decision_timeout_s", "horizon_s")
    return runs


def _nearest_limits(runs: pd.DataFrame, calls: pd.DataFrame) -> pd.Series[float]:
    """Return for each call the limit of the runs that is near its own, else its own to three digits; seconds."""
    limits = np.sort(runs["decision_timeout_s"].unique().astype("float64"))
    had = calls["decision_timeout_s"]
    nearest = pd.Series(limits[np.abs(had.to_numpy()[:, None] - limits).argmin(axis=1)], index=calls.index)
    return nearest.where(
        (had - nearest).abs() <= LIMIT_WITHIN * nearest, had.map(lambda limit_s: float(f"{limit_s:.3g}"))
    )


def _held(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs without the waits past the deadline that still hold it."""
    return runs.assign(caller_overrun_s=runs["caller_overrun_s"].mask(runs["caller_overrun_s"] <= HELD_WITHIN_S, 0.0))


def _cut_words(calls: pd.DataFrame) -> str:
    shares = [share_interval(int((calls[name] > 0).sum()), len(calls)) for name in ("requests_cut", "threads_left")]
    cut, threads = (f"{percent(each.estimate)} [{percent(each.low)}, {percent(each.high)}]" for each in shares)
    requests = count_of(int(calls["requests_cut"].sum()), "request")
    return (
        f"The deadline cut or refused requests in {cut} of calls ({requests}); a thread went on after the return in "
        f"{threads}."
    )
