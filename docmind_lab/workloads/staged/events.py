"""Events of a ladder, and the table `stages` made from the events.

Events go to the recorder of a run, if there is one. They carry names and numbers. A write is named by a digest of its
key, since an entity's name is text of a document. Metrics are counted from the events of a run when it is over.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from docmind_lab.analysis.tables.frames import ExtraTable, rows_to_frame
from docmind_lab.analysis.tables.records import ALTERNATIVE, RUN_ID, STUDY_ID, Column
from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.levels import NAN
from docmind_lab.network.recorder import current_recorder
from docmind_lab.workloads.staged.calls import Write
from docmind_lab.workloads.staged.graph_store import ORIGINS

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


@dataclass(frozen=True)
class StageReporter:
    """Records the events of stages."""

    clock: Clock = WALL

    def event(self, name: str, role: str, /, **detail: Any) -> None:
        """Record an event. role: the stage that it happened in."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.event(name, role, **detail)

    def started(self, stage: str) -> float:
        """Record that a stage begins, and return the instant."""
        self.event("stage_started", stage, stage=stage)
        return self.clock.now()

    def ended(self, stage: str, outcome: str, counts: dict[str, Any]) -> None:
        """Record that a stage is over. counts: of its work."""
        self.event("stage_ended", stage, stage=stage, outcome=outcome, **counts)

    def fell_back(self, stage: str, to_stage: str, reason: str) -> None:
        """Record that the next rung takes over."""
        self.event("fallback", stage, from_stage=stage, to_stage=to_stage, reason=reason)

    def wrote(
        self, stage: str, origin: str, write: Write, *, confirmed: bool, created: bool, repaired: bool = False
    ) -> None:
        """Record that a write was tried."""
        detail = {"origin": origin, "kind": write.kind, "confirmed": confirmed, "created": created}
        self.event("graph_write", stage, stage=stage, key=digest(write.key), repaired=repaired, **detail)
        if confirmed and write.counts_as:
            # What was found by the deadline, in the words that every workload has for it.
            topics = [digest(counted) for counted in write.counts_as]
            found = {"ids": [digest(write.key)], "topics": topics, "strategy": origin, "router_used": False}
            self.event("retrieved", stage, **found)

    def retried(self, origin: str, confirmed: bool) -> None:
        """Record that a relation was written again."""
        self.event("relation_retried", "finalize", origin=origin, confirmed=confirmed)


OUTCOMES = (
    "done",
    "rounds",
    "timeout",
    "error",
    "confirmed",
    "unconfirmed",
    "nothing",
    *ORIGINS,
    "skipped_empty",
    "failed",
    "cut",
)
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
    by_run: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    of_run = {(run["study_id"], run["run_id"]): run for run in _rows(runs[runs["workload"] == "staged"])}
    ours = _rows(events[events["event"].isin(["stage_started", "stage_ended", "graph_write", "fallback"])])
    # Events of one instant stand in the order of their names: what a rung did is added to it once all have begun.
    for event in sorted(ours, key=lambda event: event["event"] != "stage_started"):
        run = of_run.get((event["study_id"], event["run_id"]))
        if run is None:
            continue
        detail = json.loads(event["detail"])
        stage = detail.get("stage") or detail["from_stage"]
        rungs = by_run[run["study_id"], run["run_id"]]
        _note(rungs.setdefault(stage, _row(run, stage)), event["event"], event["at_s"], detail, run)
    rows = [by_run[key][stage] for key in of_run for stage in STAGES if stage in by_run.get(key, {})]
    return rows_to_frame(COLUMNS, rows)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    made: Any = frame.to_dict("records")
    return list(made)


def _row(run: Mapping[str, Any], stage: str) -> dict[str, Any]:
    return {
        "study_id": run["study_id"],
        "run_id": run["run_id"],
        "alternative": run["alternative"],
        "question_id": run["question_id"],
        "stage": stage,
        "began_at_s": NAN,
        "ended_at_s": NAN,
        "duration_s": NAN,
        "outcome": "cut",
        "timeout_s": NAN,
        "writes_confirmed": 0,
        "writes_unconfirmed": 0,
        "writes_after_return": 0,
        "writes_after_deadline": 0,
        "calls_skipped": 0,
        "calls_dropped": 0,
        "fell_back": False,
    }


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
