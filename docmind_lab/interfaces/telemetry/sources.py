"""A query to a coordinator as a measured run.

Of a query there is what its own side recorded; servers are not asked. It is exported when nothing of it is at work any
more, at its horizon at the latest. A coordinator that closes ends what is at work: the query is then exported as it
stood, and its work counts as not over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from docmind_lab.core.levels import NAN
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.derive import (
    Answer,
    RunFacts,
    call_records,
    derive_run,
    event_records,
    horizon_of,
)
from docmind_lab.experiments.measurement.run import MeasuredRun

if TYPE_CHECKING:
    from docmind_lab.docmind.coordinator.delivery import EndedQuery


def measured_query(query: EndedQuery, settings: Settings, study_id: str) -> MeasuredRun:
    """Wait until a query is quiescent and return it as a measured run; what only servers know is NaN."""
    recorder, alternative, outcome = query.recorder, query.alternative, query.outcome
    limit_s = recorder.deadline.limit_s
    horizon_s = horizon_of(limit_s)
    horizon_at = recorder.started_at + horizon_s
    quiet = recorder.wait_quiet(max(0.0, horizon_at - recorder.clock.now()))
    snapshot = recorder.snapshot()
    returned_at = recorder.started_at if recorder.returned_at is None else recorder.returned_at
    # Whoever had no answer yet when it closed was waited for, and is told of whole.
    if returned_at <= query.closing.at < min(horizon_at, snapshot.last_at):
        horizon_at, horizon_s = query.closing.at, query.closing.at - recorder.started_at
    if not quiet or snapshot.last_at > horizon_at:
        quiet, snapshot = False, snapshot.until(horizon_at)
    facts = RunFacts.of(
        alternative,
        limit_s,
        horizon_s=horizon_s,
        study_id=study_id,
        run_id=recorder.run_id,
        workload="supervisor",
        seed=recorder.seed,
        question_id="",
        router_injection=settings.agents.enable_router_injection,
        retries="",
        latency_profile="",
        fault="",
        stops_on_disconnect=True,
        clock="wall",
        has_server_log=False,
        # Others may be answered at the same time.
        alone=False,
    )
    answer = Answer(outcome.outcome, outcome.stop_reason, len(outcome.documents), NAN, NAN)
    calls, events = call_records(facts, recorder, snapshot, []), event_records(facts, recorder, snapshot, [])
    run = derive_run(facts, answer, calls, events, work_censored=not quiet, threads_left=snapshot.threads_left)
    return MeasuredRun(run, tuple(calls), tuple(events), outcome, recorder.started_at)
