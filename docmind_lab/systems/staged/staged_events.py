"""Events of a ladder, and the table `stages` made from the events.

Events go to the recorder of a run, if there is one. They carry names and numbers. A write is named by a digest of its
key, since an entity's name is text of a document. Metrics are counted from the events of a run when it is over.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from docmind_lab.core.clock import WALL
from docmind_lab.core.levels import NAN
from docmind_lab.network.recorder import note_event
from docmind_lab.systems.base.results import record_retrieved
from docmind_lab.systems.staged.graph_store import ORIGINS
from docmind_lab.systems.staged.stage_calls import Write
from docmind_lab.tables.frames import ExtraTable, blank_row, event_rows, rows_of, rows_to_frame
from docmind_lab.tables.records import ALTERNATIVE, RUN_ID, STUDY_ID, Column

STAGES = ("primary", "suggested", "generated", "forced", "finalize")
"""The rungs, from the best to the last, and what is done after any of them."""

EVENTS = {
    "stage_started": "A rung of the ladder began. detail: stage.",
    "graph_write": "A write was tried. detail: stage, origin, kind, confirmed, created, key (a digest), repaired.",
    "calls_dropped": "More calls were asked for than are run at once. detail: stage, dropped.",
    "relation_retried": "An unconfirmed relation was written again. detail: origin, confirmed.",
    "stage_ended": "A rung ended. detail: stage, outcome, confirmed, unconfirmed, skipped, dropped, timeout_s.",
    "fallback": "The next rung takes over. detail: from_stage, to_stage, reason.",
    "dead_letter": "Nothing could be written of a chunk, and it was put aside. detail: error_type.",
}
"""The events that only this workload records."""


def digest(key: str) -> str:
    """Return a short digest of a key, which stands for it in events."""
    return hashlib.blake2b(key.encode(), digest_size=6).hexdigest()


def note_stage_start(stage: str) -> float:
    """Record that a stage begins, and return the instant."""
    note_event("stage_started", stage, stage=stage)
    return WALL.now()


def note_stage_end(stage: str, outcome: str, following: str, **detail: Any) -> None:
    """Record that a rung ended, and that the next one takes over if that is what follows."""
    note_event("stage_ended", stage, stage=stage, outcome=outcome, **detail)
    if following != STAGES[-1]:
        note_event("fallback", stage, from_stage=stage, to_stage=following, reason=outcome)


def note_write(
    stage: str, origin: str, write: Write, *, confirmed: bool, created: bool, repaired: bool = False
) -> None:
    """Record that a write was tried in a stage."""
    detail = {"origin": origin, "kind": write.kind, "confirmed": confirmed, "created": created}
    note_event("graph_write", stage, stage=stage, key=digest(write.key), repaired=repaired, **detail)
    if confirmed and write.counts_as:
        # What was found by the deadline, in the words that every workload has for it.
        record_retrieved(stage, [digest(write.key)], map(digest, write.counts_as), origin)


_OF_RUNGS = ("done", "rounds", "timeout", "error", "confirmed", "unconfirmed", "nothing")
OUTCOMES = (*_OF_RUNGS, *ORIGINS, "skipped_empty", "failed", "cut")
COLUMNS = (
    STUDY_ID,
    RUN_ID,
    ALTERNATIVE,
    Column("question_id", "level", "The chunk."),
    Column("stage", "level", "The rung; finalize is done after any of them.", STAGES),
    Column("began_at_s", "float", "When it began."),
    Column("ended_at_s", "float", "When it ended; NaN if it was cut, or had not by the horizon."),
    Column("duration_s", "float", "ended_at_s − began_at_s."),
    Column(
        "outcome",
        "level",
        "primary: done, rounds (too many), timeout, error. A lower rung: confirmed, unconfirmed, nothing (to write). "
        "finalize: the rung that wrote first, skipped_empty, failed. Any: cut, if it has no end.",
        OUTCOMES,
    ),
    Column("timeout_s", "float", "primary: how long it was given; NaN for the others."),
    Column("writes_confirmed", "int", "Writes that the store has confirmed."),
    Column("writes_unconfirmed", "int", "Writes that it has not."),
    Column("writes_after_return", "int", "Of the confirmed ones, those after the caller had left."),
    Column("writes_after_deadline", "int", "Of the confirmed ones, those after the deadline."),
    Column("calls_skipped", "int", "Calls that asked for nothing that can be done."),
    Column("calls_dropped", "int", "Calls beyond what is run at once."),
    Column("fell_back", "bool", "Whether the next rung had to take over."),
)


def stages_table(events: pd.DataFrame, runs: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """Build the table `stages`: one row for each rung that began in a run, ordered by run and rung."""
    rungs: dict[tuple[str, str, str], dict[str, Any]] = {}
    of_run = {(run["study_id"], run["run_id"]): run for run in rows_of(runs[runs["workload"] == "staged"])}
    ours = event_rows(events, "stage_started", "stage_ended", "graph_write", "fallback")
    # Events of one instant stand in the order of their names: what a rung did is added to it once all have begun.
    for event in sorted(ours, key=lambda event: event["event"] != "stage_started"):
        run = of_run.get((event["study_id"], event["run_id"]))
        if run is None:
            continue
        detail = event["detail"]
        stage = detail.get("stage") or detail["from_stage"]
        begun = {**blank_row(COLUMNS), **run, "stage": stage, "outcome": "cut", "ended_at_s": NAN, "timeout_s": NAN}
        row = rungs.setdefault((run["study_id"], run["run_id"], stage), begun)
        _note(row, event["event"], event["at_s"], detail, run)
    rows = [rungs[*key, stage] for key in of_run for stage in STAGES if (*key, stage) in rungs]
    return rows_to_frame(COLUMNS, rows)


def _note(row: dict[str, Any], name: str, at_s: float, detail: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    if name == "stage_started":
        row["began_at_s"] = at_s
    elif name == "stage_ended":
        row |= {"ended_at_s": at_s, "duration_s": at_s - row["began_at_s"], "outcome": detail["outcome"]}
        row["timeout_s"] = detail.get("timeout_s", NAN)
        row |= {"calls_skipped": detail["skipped"], "calls_dropped": detail["dropped"]}
    elif name == "fallback":
        row["fell_back"] = True
    elif not detail["confirmed"]:
        row["writes_unconfirmed"] += 1
    else:
        row["writes_confirmed"] += 1
        row["writes_after_return"] += not math.isnan(run["returned_at_s"]) and at_s > run["returned_at_s"]
        row["writes_after_deadline"] += at_s > run["decision_timeout_s"]


STAGES_TABLE = ExtraTable(
    name="stages",
    meaning="One rung of the ladder in one run: only those that began.",
    columns=COLUMNS,
    derive=stages_table,
)
