"""The result of a load study: its tables and manifest, its summary, and the folder that it is saved in.

    queries     a row for each query: every column of `runs`, and those of `QUERY_COLUMNS`
    servings    a row for each request that the model server received: the columns of `SERVING_COLUMNS`

Instants of both are seconds since the begin of the crowd; columns that are those of `runs` count from the start of the
run, which is `started_at_s`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pandas as pd

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.text import count_of, number, percent
from docmind_lab.core.whole_files import write_whole
from docmind_lab.experiments.load.crowd import QueryResult
from docmind_lab.experiments.load.measures import (
    FEWEST_REPLICATES,
    CountedFrom,
    goodput_differences,
    load_summary,
    replicate_measures,
)
from docmind_lab.findings.finding import Finding, MakesFinding, after_interrupt
from docmind_lab.findings.study import files_of, prepare_folder, read_manifest, table_in
from docmind_lab.tables.frames import to_frame, with_dtypes
from docmind_lab.tables.records import CallRecord, RunRecord

# Instants that were added up in two ways differ in their last digits only.
_SAME_INSTANT_S = 1e-6

QUERY_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "arrivals": "category",
        "offered_per_s": "float64",
        "slots": "Int64",
        "callers": "Int64",
        "replicate": "int64",
        "query": "int64",
        **dict.fromkeys(("window_from_s", "window_until_s", "scheduled_at_s", "started_at_s"), "float64"),
        **dict.fromkeys(("waited_for_caller_s", "response_s"), "float64"),
        "in_time": "bool",
    }
)
"""The columns that `queries` has besides those of `runs`, with their dtypes.

arrivals: the kind of the arrival process; offered_per_s: its rate. slots: of the provider; callers: of the system; NA
for no limit. replicate: 0, 1, …; its arrivals, questions and draws are the same under every alternative. query: place
in its replicate. window_from_s, window_until_s: queries that arrive in between are counted. waited_for_caller_s: from
the scheduled arrival to the start. response_s: from the scheduled arrival until the caller was back, NaN if it was not
by the horizon. in_time: answered, and response_s within the decision timeout.
"""

SERVING_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("study_id", "run_id", "call_id"), "str"),
        "attempt": "int64",
        **dict.fromkeys(("role", "outcome"), "category"),
        **dict.fromkeys(("received_at_s", "served_from_s", "left_at_s", "tokens"), "float64"),
    }
)
"""The columns of `servings`, with their dtypes: one row is a request at the model server.

served_from_s: a slot was had, NaN if never. left_at_s: answered, given up, or cut at the horizon of its run. outcome:
that of the server's row in `calls`. tokens: read and written for it, as the server counted; NaN in tables from before
they were counted.
"""


@dataclass(frozen=True)
class QueryRows:
    """The rows that one query has: of the run, of its load (`QUERY_COLUMNS`), and of its requests."""

    run: RunRecord
    load: Mapping[str, Any]
    servings: tuple[Mapping[str, Any], ...]


def rows_of_query(result: QueryResult, **same: Any) -> QueryRows:
    """Make the rows of a query. same: those of `QUERY_COLUMNS` that were fixed before it arrived."""
    run = result.measured.run
    response_s = result.waited_for_caller_s + run.returned_at_s
    load = same | {
        "query": result.number,
        "scheduled_at_s": result.query.scheduled_at_s,
        "started_at_s": result.started_at_s,
        "waited_for_caller_s": result.waited_for_caller_s,
        "response_s": response_s,
        "in_time": run.outcome == "answered" and response_s <= run.decision_timeout_s,
    }
    requests = (call for call in result.measured.calls if call.seen_from == "server" and call.kind == "llm")
    return QueryRows(run, load, tuple(_serving(call, result.started_at_s, run.horizon_s) for call in requests))


def _serving(call: CallRecord, started_at_s: float, horizon_s: float) -> dict[str, Any]:
    # What has not ended by the horizon is cut there, and its slot is free.
    left_s = horizon_s if math.isnan(call.ended_at_s) else call.ended_at_s
    served_from_s = call.started_at_s + call.queue_wait_s
    return {name: getattr(call, name) for name in ("study_id", "run_id", "call_id", "attempt", "role", "outcome")} | {
        "received_at_s": started_at_s + call.started_at_s,
        "served_from_s": NAN if served_from_s > left_s - _SAME_INSTANT_S else started_at_s + served_from_s,
        "left_at_s": started_at_s + left_s,
        "tokens": call.input_tokens + call.output_tokens,
    }


def _typed(frame: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return the columns of a frame with their dtypes. Raises: RecordError for a frame that lacks one."""
    missing = [name for name in columns if name not in frame]
    if missing:
        raise RecordError(f"a load study has no column {', '.join(missing)}; it was not written by this package")
    # Levels come as plain texts, or as a file holds them.
    levels = {name: "str" for name, dtype in columns.items() if dtype == "category"}
    return frame[list(columns)].astype(levels).astype(dict(columns))


@dataclass(frozen=True, eq=False, repr=False)
class LoadStudy(MakesFinding):
    """The result of `run_load`: a row for each query, and one for each request at the model server.

    Args:
        queries: The columns of `runs`, which the data dictionary describes, and `QUERY_COLUMNS`.
        servings: The columns of `SERVING_COLUMNS`.
        manifest: Settings, versions, machine, CPU seconds.
    """

    queries: pd.DataFrame
    servings: pd.DataFrame
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, measured: Iterable[QueryRows], manifest: Mapping[str, Any] = MappingProxyType({})) -> LoadStudy:
        """Return the study of measured queries, ordered by their runs, whatever order their crowds ended in.

        Args:
            measured: Rows of each query.
            manifest: Settings, versions, machine, CPU seconds.
        """
        rows = sorted(measured, key=lambda item: item.run.run_id)
        loads = pd.DataFrame([row.load for row in rows], columns=list(QUERY_COLUMNS))
        servings = pd.DataFrame([each for row in rows for each in row.servings], columns=list(SERVING_COLUMNS))
        runs = to_frame("runs", [row.run for row in rows])
        return cls(pd.concat([runs, _typed(loads, QUERY_COLUMNS)], axis=1), _typed(servings, SERVING_COLUMNS), manifest)

    def replicates(self, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return one row for each crowd: see `measures.replicate_measures`, also for `counted_from`."""
        return replicate_measures(self.queries, self.servings, counted_from)

    @property
    def title(self) -> str:
        """One line that says what was run."""
        first = self.queries.iloc[0]
        slots = "no limit of slots" if pd.isna(first["slots"]) else count_of(int(first["slots"]), "slot")
        callers = "" if pd.isna(first["callers"]) else f" · {count_of(int(first['callers']), 'caller')}"
        clock = " · on the wall clock" if str(first["clock"]) == "wall" else ""
        queries = "1 query" if len(self.queries) == 1 else f"{len(self.queries):,} queries"
        return (
            f"{first['workload']} under load · {first['decision_timeout_s']:g} s decision timeout · "
            f"{first['latency_profile']} latencies, {slots}{callers}{clock} · {queries}"
        )

    def summary(self, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return one row for each load and arm, with intervals over replicates: see `measures.load_summary`."""
        return load_summary(self.replicates(counted_from))

    def differences(self, reference: str, counted_from: CountedFrom = "arrival") -> pd.DataFrame:
        """Return how much more or less goodput each arm has than the reference: see `goodput_differences`."""
        return goodput_differences(self.replicates(counted_from), reference)

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables and the manifest into a folder, each by a temporary file and a rename, the manifest last.

        Raises: ConfigurationError when the folder cannot be written or holds a study already.
        """
        folder = prepare_folder(directory)
        for name, write in files_of({"queries": self.queries, "servings": self.servings}, self.manifest):
            write_whole(folder / name, write)
        return folder

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> LoadStudy:
        """Read a study that `save` wrote.

        Raises: RecordError if there is none, a newer version wrote it, or a file was changed after it was written.
        """
        folder = Path(directory)
        manifest, checksums = read_manifest(folder)
        queries, servings = (table_in(folder, name, checksums) for name in ("queries", "servings"))
        if "tokens" not in servings:
            # Written before tokens were counted here.
            servings = servings.assign(tokens=NAN)
        of_runs = with_dtypes("runs", queries)
        queries = pd.concat([of_runs, _typed(queries, QUERY_COLUMNS)], axis=1)
        return cls(queries, _typed(servings, SERVING_COLUMNS), manifest)

    def finding(self) -> Finding:
        """Return the measures of each load and arm."""
        return Finding((after_interrupt(self.interrupted, self.title), _shown(self.summary())))

    @property
    def interrupted(self) -> str:
        """How many crowds of how many are finished, in words, of a study that was interrupted; empty otherwise."""
        return str(self.manifest.get("interrupted", ""))


def _shown(summary: pd.DataFrame) -> pd.DataFrame:
    """Return a summary as it is shown, with response times where there are enough queries for their quantiles."""
    bounds = zip(summary["goodput_low_per_s"], summary["goodput_high_per_s"], strict=True)
    replicates = summary["replicates"].tolist()
    intervals = [
        ("one replicate" if count == 1 else f"too few: {count} of {FEWEST_REPLICATES}")
        if math.isnan(low)
        else f"{low:.3f} – {high:.3f}"
        for (low, high), count in zip(bounds, replicates, strict=True)
    ]
    collapsed = [f"{count} of {of}" for count, of in zip(summary["collapsed"], replicates, strict=True)]
    shown = pd.DataFrame(
        {
            "offered /s": summary["offered_per_s"].map("{:.3g}".format),
            "arm": summary["arm"].astype("str"),
            "goodput /s": summary["goodput_per_s"].map("{:.3f}".format),
            "95 % interval": intervals,
            "collapsed": collapsed,
            "in time": [percent(each, 1) for each in summary["share_in_time"]],
            "slots busy": [percent(each) for each in summary["busy_share"]],
            "slots on abandoned": [percent(each, 1) for each in summary["abandoned_share"]],
            "live queue wait (s)": [number(each, 2) for each in summary["live_queue_wait_s"]],
        }
    )
    if summary["response_p99_s"].isna().any():
        return shown
    quantiles = {"response p50": "response_median_s", "p99": "response_p99_s"}
    return shown.assign(**{name: summary[column].map("{:.1f} s".format) for name, column in quantiles.items()})
