"""The events and calls that a run records for each call to a peer, and the table `peer_tasks` made from them."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.core.levels import NAN
from docmind_lab.network import LogicalCall
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.systems.peers.correlation import LIMITS, PEER_OUTCOMES, PeerResult
from docmind_lab.tables.frames import ExtraTable, blank_row, event_rows, rows_to_frame
from docmind_lab.tables.records import ALTERNATIVE, RUN_ID, Column

EVENTS: Mapping[str, str] = MappingProxyType(
    {
        "peer_sent": "A peer was asked. detail: call (its call_id), timeout_s.",
        "peer_task_known": "The peer's server named its task. detail: call.",
        "peer_extended": "A sign of life put a timeout off. detail: call, extensions, due_s (since it was sent).",
        "peer_decided": "A call to a peer was decided. detail: call, outcome, limit (that fired), after_s.",
        "peer_too_late": "An answer found its call decided. detail: call, kind (late, duplicate), late_by_s.",
        "peer_cancel_sent": "A peer was asked to stop. detail: call, cancel (call_id of the request).",
        "peer_cancel_ended": "The answer to that, or none in time. detail: call, outcome, latency_s.",
        "peer_retriggered": "All calls of a step were decided and the parent went on. detail: one count per outcome.",
    }
)
"""Events that only this workload records."""


class CallNotes:
    """Records the events of one call; does nothing without a recorder."""

    def __init__(self, peer: str, position: str, recorder: Recorder | None) -> None:
        self._peer, self._position, self._recorder = peer, position, recorder
        # What the recorder will name it: a call may be decided before it is sent.
        self._call_id = f"peer/{peer}/{position}.1"

    @contextlib.contextmanager
    def sent(self, timeout_s: float) -> Iterator[None]:
        """Record the block, which sends the call and reads its stream, as a call of the run."""
        if self._recorder is None:
            yield
            return
        with self._call() as call:
            self._call_id = call.call_id
            self.event("peer_sent", timeout_s=timeout_s)
            yield

    def passages_found(self, ids: Sequence[object], topics: Mapping[str, str]) -> None:
        """Record the passages that a timely answer cites. topics: of the passages sent to the peer, by id."""
        if self._recorder is not None:
            known = [str(passage_id) for passage_id in ids if passage_id in topics]
            names = sorted({topics[passage_id] for passage_id in known})
            self._recorder.event("retrieved", self._peer, ids=known, topics=names, strategy="peer", router_used=False)

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[list[str]]:
        """Record the block, which asks the peer to stop and appends the outcome to the list."""
        ended: list[str] = []
        if self._recorder is None:
            yield ended
            return
        # Of the run, though in a context of its own: see `PeerCaller._run_later`.
        with recording(self._recorder), self._call() as call:
            began_at = self._recorder.clock.now()
            self.event("peer_cancel_sent", cancel=call.call_id)
            try:
                yield ended
            finally:
                outcome = ended[-1] if ended else "failed"
                self.event("peer_cancel_ended", outcome=outcome, latency_s=self._recorder.clock.now() - began_at)

    def retriggered(self, results: Sequence[PeerResult]) -> None:
        """Record that the parent goes on, with a count of each outcome."""
        if self._recorder is not None:
            counts: dict[str, Any] = {name: sum(r.outcome == name for r in results) for name in PEER_OUTCOMES}
            self._recorder.event("peer_retriggered", **counts)

    def _call(self) -> contextlib.AbstractContextManager[LogicalCall]:
        assert self._recorder is not None
        return self._recorder.call("peer", self._peer, self._position)

    def event(self, name: str, **detail: Any) -> None:
        """Record one of `EVENTS` for this call."""
        if self._recorder is not None:
            self._recorder.event(name, self._peer, call=self._call_id, **detail)


_COLUMNS = (
    RUN_ID,
    Column("call_id", "text", "The call to the peer; key of `calls` with the run."),
    ALTERNATIVE,
    Column("peer", "level", "Who was asked."),
    Column("sent_at_s", "float", "When it was asked."),
    Column("outcome", "level", "What was decided first; pending: nothing by the horizon.", (*PEER_OUTCOMES, "pending")),
    Column("limit", "level", "The timeout that fired, of a call that timed out.", ("", *LIMITS)),
    Column("latency_s", "float", "From sending to the decision; NaN while pending."),
    Column("extensions", "int", "How often a sign of life put the timeout off."),
    Column("late_responses", "int", "Answers that came after the call was decided without one."),
    Column("duplicate_responses", "int", "Answers that came after the call had its answer."),
    Column("late_by_s", "float", "How long after the decision the last of these came; NaN without one."),
    Column("cancel_outcome", "level", "What came of the cancel; empty when none was sent."),
    Column("cancel_delivered_s", "float", "From the decision until the peer's server had the cancel (server rows)."),
    Column("cancel_latency_s", "float", "From sending the cancel to its answer, or to the end of its time."),
    Column("peer_worked_s", "float", "Seconds that the peer's server was busy with the task by the horizon."),
    Column("peer_wasted_s", "float", "The part of these of which nothing came: all of a call that was not completed."),
)


def _peer_tasks(events: pd.DataFrame, runs: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """Build the table: one row for each call to a peer, in the order of the events."""
    horizon_of = dict(zip(runs["run_id"], runs["horizon_s"], strict=True))
    alternative_of = dict(zip(runs["run_id"], runs["alternative"], strict=True))
    on_server = calls[(calls["kind"] == "peer") & (calls["seen_from"] == "server")]
    keys = zip(on_server["run_id"], on_server["call_id"], strict=True)
    spans = zip(on_server["started_at_s"], on_server["ended_at_s"], strict=True)
    times = dict(zip(keys, spans, strict=True))
    of_call: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for event in event_rows(events, *EVENTS):
        if "call" in event["detail"]:
            of_call[event["run_id"], event["detail"]["call"]].append(event)
    rows = [
        _row(run_id, call_id, call_events, times, float(horizon_of[run_id])) | {"alternative": alternative_of[run_id]}
        for (run_id, call_id), call_events in of_call.items()
        if any(event["event"] == "peer_sent" for event in call_events)
    ]
    return rows_to_frame(_COLUMNS, rows)


def _row(
    run_id: str,
    call_id: str,
    call_events: Sequence[Mapping[str, Any]],
    times: Mapping[tuple[str, str], tuple[float, float]],
    horizon_s: float,
) -> dict[str, Any]:
    row = {**blank_row(_COLUMNS), "run_id": run_id, "call_id": call_id, "outcome": "pending"}
    decided_at_s = NAN
    # Events of one instant stand in no particular order, so nothing here depends on one.
    for event in call_events:
        name, at_s, detail = event["event"], event["at_s"], event["detail"]
        if name == "peer_sent":
            row |= {"peer": event["role"], "sent_at_s": at_s}
        elif name == "peer_extended":
            row["extensions"] = max(row["extensions"], detail["extensions"])
        elif name == "peer_decided":
            row |= {"outcome": detail["outcome"], "limit": detail["limit"], "latency_s": detail["after_s"]}
            decided_at_s = at_s
        elif name == "peer_too_late":
            row[f"{detail['kind']}_responses"] += 1
            row["late_by_s"] = np.fmax(row["late_by_s"], detail["late_by_s"])
        elif name == "peer_cancel_ended":
            row |= {"cancel_outcome": detail["outcome"], "cancel_latency_s": detail["latency_s"]}
    cancels = [event["detail"]["cancel"] for event in call_events if event["event"] == "peer_cancel_sent"]
    if cancels and (run_id, cancels[0]) in times:
        row["cancel_delivered_s"] = times[run_id, cancels[0]][0] - decided_at_s
    started_at_s, ended_at_s = times.get((run_id, call_id), (NAN, NAN))
    # A peer that is still at work at the horizon has worked at least until then.
    worked_s = (horizon_s if math.isnan(ended_at_s) else ended_at_s) - started_at_s
    return row | {"peer_worked_s": worked_s, "peer_wasted_s": 0.0 if row["outcome"] == "completed" else worked_s}


PEER_TASKS = ExtraTable(
    name="peer_tasks",
    meaning="One call to a peer agent: what was decided, by which limit, and what the peer did afterwards.",
    columns=_COLUMNS,
    derive=_peer_tasks,
)
