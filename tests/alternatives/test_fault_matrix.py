"""Every fault under every alternative: nothing hangs past its horizon, one typed outcome each, and no row is lost."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from laboratories import laboratory
from often import often

from docmind_lab.alternatives import ALTERNATIVES, Alternative, Cooperative, HardTimeout, Hybrid, Native
from docmind_lab.core.levels import STOP_REASONS, RunOutcome
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.services.faults import FAULT_KINDS

pytestmark = pytest.mark.wall

EVERY: tuple[Alternative, ...] = (
    *(kind() for kind in ALTERNATIVES.values()),
    HardTimeout(drain_on_timeout=True),
    Native(per_step=True),
)
TIMEOUT_S, HORIZON_FACTOR = 0.6, 2.0
# The harness looks at the horizon and then cuts what is left; a busy machine may be this late with looking.
LATE_LOOK_S = 1.0


@pytest.mark.parametrize("kind", often(FAULT_KINDS, "hang"))
def test_under_every_alternative_a_fault_ends_in_one_typed_outcome_by_the_horizon_and_loses_no_row(kind: str) -> None:
    with laboratory("typical/40", kind, own_process=False) as lab:
        measured = lab.measure(
            EVERY, runs=1, decision_timeout_s=TIMEOUT_S, horizon_factor=HORIZON_FACTOR, side_by_side=len(EVERY)
        )
    assert len(measured) == len(EVERY)
    for alternative, (run,) in measured.items():
        _check_outcome(run, str(alternative))
        _check_rows(run, str(alternative))


def _check_outcome(measured: MeasuredRun, alternative: str) -> None:
    run = measured.run
    assert run.outcome in get_args(RunOutcome), alternative
    assert run.stop_reason in STOP_REASONS, alternative
    assert (run.outcome == "unfinished") == (run.returned_at_s != run.returned_at_s), alternative
    assert not run.returned_at_s > run.horizon_s + LATE_LOOK_S, alternative
    if run.outcome == "answered":
        assert measured.outcome.answer, alternative
    if run.outcome == "failed":
        assert measured.outcome.error_type, alternative


def _check_rows(measured: MeasuredRun, alternative: str) -> None:
    keys = [(call.call_id, call.attempt, call.seen_from) for call in measured.calls]
    assert len(set(keys)) == len(keys), alternative
    client = {(call.call_id, call.attempt) for call in measured.calls if call.seen_from == "client"}
    server = {(call.call_id, call.attempt) for call in measured.calls if call.seen_from == "server"}
    started = [json.loads(event.detail) for event in measured.events if event.event == "attempt_started"]
    assert {(detail["call_id"], detail["attempt"]) for detail in started} <= client, alternative
    assert server <= client, alternative
    answered = {
        (call.call_id, call.attempt)
        for call in measured.calls
        if call.seen_from == "client"
        and call.outcome in ("ok", "error")
        and call.first_byte_at_s == call.first_byte_at_s
    }
    assert answered <= server, alternative


@pytest.mark.full
def test_a_fault_that_passes_is_cured_by_retries_within_the_budget_under_a_and_e() -> None:
    with laboratory("typical/40", "http_500@1:*", own_process=False) as lab:
        measured = lab.measure((Cooperative(), Hybrid()), runs=1, decision_timeout_s=30.0)
    for alternative, (run,) in measured.items():
        assert run.run.outcome == "answered", alternative
        retries = [event for event in run.events if event.event == "retry"]
        assert len(retries) == run.run.llm_calls / 2, alternative


@pytest.mark.parametrize("kind", often(["disconnect", "empty"], "disconnect"))
def test_a_broken_reply_is_tried_again_or_named_and_never_taken_for_an_answer(kind: str) -> None:
    with laboratory("typical/40", f"{kind}:synthesis", own_process=False) as lab:
        measured = lab.measure((Cooperative(), Hybrid()), runs=1, decision_timeout_s=10.0)
    for alternative, (run,) in measured.items():
        broken = [c for c in run.calls if c.role == "synthesis" and c.seen_from == "client"]
        assert broken, alternative
        if kind != "empty":
            assert run.run.outcome == "failed", alternative
            assert len(broken) == 2, "one try and one retry"
        assert run.run.answer_score == 0.0 or run.run.answer_score != run.run.answer_score, alternative
