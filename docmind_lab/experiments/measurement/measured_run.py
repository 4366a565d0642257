"""Measure one run: the caller's side, then everything that goes on until the run is quiescent or at its horizon."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, Protocol

from docmind_lab.alternatives.base import Alternative, Outcome
from docmind_lab.core.budgets import Meter, metering
from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.sync_async import in_daemon_thread
from docmind_lab.experiments.measurement.derive import Answer, RunFacts, call_records, derive_run, event_records
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.network.snapshots import RawEvent
from docmind_lab.services.log import RequestRow
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.workload_kind import Workload
from docmind_lab.tables.records import RunRows

# A request whose bytes were written reaches the service within a round trip on loopback; one that has not after this
# long was cut before it got there.
_ARRIVAL_PATIENCE_S = 0.5
# What was cut unwinds through its graph in milliseconds; a thread that sleeps or computes may take longer, and is left.
_UNWINDING_PATIENCE_S = 2.0
# The first look at the service's log blocks at most this long, so that what changes on this side is seen too; each is
# twice as long as the one before, so that a service that is busy for hours is not asked a hundred thousand times.
_FIRST_LOOK_S = 0.25


class RequestLog(Protocol):
    """The log of a service, which has a row for each request that it received."""

    def rows(self, run_id: str, wait_quiet_s: float = 0.0) -> list[RequestRow]:
        """Return the rows of a run, after waiting for the service to be done with it."""

    def forget(self, run_id: str) -> None:
        """Cut the requests of a run that are still open, and drop its rows."""


@dataclass(frozen=True)
class MeasuredRun(RunRows):
    """The rows of one run, and its answer, which no table holds.

    started_at_s: instant of its start on the run's own clock, which no table holds either.
    """

    outcome: Outcome
    started_at_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class RunOrder:
    """A run to be measured: its facts, the alternative that enforces its deadline, and the question."""

    facts: RunFacts
    alternative: Alternative
    question: Question


def measure(order: RunOrder, workload: Workload, log: RequestLog, clock: Clock = WALL) -> MeasuredRun:
    """Run once and observe until the run is quiescent or at its horizon, then end whatever is left.

    The budget starts here, before any set-up of the run. Raises what the alternative raises, which is a defect.
    """
    facts = order.facts
    deadline = Deadline.after(facts.decision_timeout_s, clock)
    recorder = Recorder(facts.run_id, facts.seed, deadline, clock)
    horizon_at = recorder.started_at + facts.horizon_s
    try:
        outcome = _answer_by(order, workload, recorder, deadline, horizon_at)
        rows, quiet = _server_rows(recorder, log, horizon_at)
        snapshot = recorder.snapshot()
        # On a busy machine the last of it may have come after the horizon, before anybody looked.
        quiet = quiet and snapshot.last_at <= horizon_at and all((row.ended_at or 0.0) <= horizon_at for row in rows)
        if quiet:
            recorder.event("quiet")
            snapshot = recorder.snapshot()
        else:
            # Both sides as they stood at one instant: what happens while we look belongs to neither.
            recorder.event("horizon", at=horizon_at)
            snapshot = recorder.snapshot().until(horizon_at)
            rows = [row for row in log.rows(facts.run_id) if row.received_at <= horizon_at]
    finally:
        try:
            # Requests that still hang are cut, so that their threads end and no run disturbs another.
            log.forget(facts.run_id)
            recorder.wait_quiet(_UNWINDING_PATIENCE_S)
        finally:
            # Also where the service is gone already, as that of a study that was given up.
            workload.forget(facts.run_id)
    recall, score = workload.scores(order.question, outcome)
    snapshot = snapshot.with_events(_scored_results(recorder, workload, order.question, snapshot.taken_at))
    answer = Answer(outcome.outcome, outcome.stop_reason, len(outcome.documents), recall, score, outcome.error_type)
    calls = call_records(facts, recorder, snapshot, rows)
    events = event_records(facts, recorder, snapshot, rows)
    run = derive_run(facts, answer, calls, events, work_censored=not quiet, threads_left=snapshot.threads_left)
    return MeasuredRun(run, tuple(calls), tuple(events), outcome, recorder.started_at)


def _scored_results(recorder: Recorder, workload: Workload, question: Question, until: float) -> list[RawEvent]:
    """Return an event for each instant at which what there was to return became better or worse."""
    events: list[RawEvent] = []
    last: dict[str, float] = {"recall": 0.0, "score": 0.0}
    for result in recorder.results:
        recall, score = workload.scores(question, Outcome("partial", result.answer, result.documents))
        detail = {name: value for name, value in (("recall", recall), ("score", score)) if not math.isnan(value)}
        if result.at <= until and detail and detail != last:
            last = detail
            events.append(RawEvent(result.at, "result_scored", detail=detail))
    return events


def _answer_by(
    order: RunOrder, workload: Workload, recorder: Recorder, deadline: Deadline, horizon_at: float
) -> Outcome:
    """Return the outcome that the caller had by the horizon; `unfinished` if it had none."""
    # A workload may hold its own calls to time limits under any alternative; that says nothing of budgets.
    meter = Meter(order.facts.budget, is_enforced=order.alternative.propagates)

    def call() -> Outcome:
        with recording(recorder), metering(meter), recorder.work("caller"):
            inputs: Mapping[str, Any] = workload.inputs(order.question)
            outcome = order.alternative.run(workload.runnable(recorder, order.question), inputs, deadline, recorder)
            recorder.mark_returned()
        return outcome

    # A thread of its own, since an alternative that does not enforce its deadline must not take the harness with it.
    returned = in_daemon_thread(call, f"docmind-caller-{recorder.run_id}")
    with contextlib.suppress(FutureTimeoutError):
        returned.result(timeout=max(0.0, horizon_at - recorder.clock.now()))
    if returned.done():
        returned.result()  # whatever it raised is a defect, a TimeoutError of its own too
    # By the instant of the return itself: its thread may say so later, and the harness may look later.
    if recorder.returned_at is not None and recorder.returned_at <= horizon_at:
        return returned.result()
    return Outcome("unfinished", stop_reason="horizon")


def _server_rows(recorder: Recorder, log: RequestLog, horizon_at: float) -> tuple[list[RequestRow], bool]:
    """Return the service's rows, and whether both sides were quiet before the horizon."""
    clock = recorder.clock
    arrival_limit_at = None
    look_s = _FIRST_LOOK_S
    while True:
        left_s = horizon_at - clock.now()
        recorder.wait_quiet(max(0.0, left_s))
        rows = log.rows(recorder.run_id, wait_quiet_s=max(0.0, min(look_s, horizon_at - clock.now())))
        look_s *= 2
        open_rows = any(row.outcome == "open" for row in rows)
        missing = recorder.unanswered_requests({(row.call_id, row.attempt) for row in rows})
        if recorder.quiet() and not open_rows:
            if not missing:
                return rows, True
            arrival_limit_at = arrival_limit_at or clock.now() + _ARRIVAL_PATIENCE_S
            if clock.now() >= arrival_limit_at:
                return rows, True
            clock.sleep(0.01)
        if clock.now() >= horizon_at:
            return rows, False
