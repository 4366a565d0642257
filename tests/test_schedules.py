"""Whatever the order of threads and tasks, each alternative keeps its contract: thousands of schedules of one run.

The contract: back by the deadline plus the alternative's documented slack; one typed outcome; no row lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import get_args

import pytest
from often import often

from docmind_lab.alternatives import (
    Alternative,
    AsyncCancellation,
    Cooperative,
    HardTimeout,
    Hybrid,
    Native,
    StopFlag,
    Unguarded,
)
from docmind_lab.alternatives.hybrid import RETURN_SLACK_S
from docmind_lab.core.levels import STOP_REASONS, RunOutcome
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import handbook

TIMEOUT_S = 12.0
OPTIONS = ServiceOptions(
    profile=LatencyProfile.named("heavy_tail/3"), faults=(Fault.parse("http_500@1:*:0.3"), Fault.parse("trickle:*:0.2"))
)
# How late each may be: what its documentation says. None: as late as its step, or without any bound.
SLACK_S: dict[Alternative, float | None] = {
    Unguarded(): None,
    Cooperative(): 0.0,
    HardTimeout(): 0.0,
    HardTimeout(drain_on_timeout=True): 0.0,
    AsyncCancellation(): 0.0,
    StopFlag(): None,
    Hybrid(): RETURN_SLACK_S,
    Native(): 0.0,
}
FEW, MANY = 13, 250  # of each of eight alternatives: a hundred schedules, and two thousand
# Instants are sums of many durations: the last bits of a deadline are not those of what is compared with it.
ROUNDING_S = 1e-6


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), corpus=handbook())
    yield made
    made.close()


def order_of(alternative: Alternative) -> RunOrder:
    """A question of two parts, so that two retrieval agents run side by side when the deadline falls."""
    comparison = Comparison(
        decision_timeout_s=TIMEOUT_S,
        runs=12,
        seed=3,
        alternatives=(alternative,),
        profile=OPTIONS.profile,
        documents=Documents("handbook"),
    )
    return next(order for order in comparison.orders() if order.question.complex)


def check(measured: MeasuredRun, slack_s: float | None, schedule: int) -> None:
    run = measured.run
    assert run.outcome in get_args(RunOutcome), schedule
    assert run.stop_reason in STOP_REASONS, schedule
    returns = [event.event for event in measured.events].count("returned")
    assert returns == (run.outcome != "unfinished"), schedule
    if slack_s is not None:
        assert run.caller_overrun_s <= slack_s + ROUNDING_S, schedule
    keys = [(call.call_id, call.attempt, call.seen_from) for call in measured.calls]
    assert len(set(keys)) == len(keys), schedule
    client = {(call.call_id, call.attempt) for call in measured.calls if call.seen_from == "client"}
    server = {(call.call_id, call.attempt) for call in measured.calls if call.seen_from == "server"}
    started = [json.loads(event.detail) for event in measured.events if event.event == "attempt_started"]
    assert {(detail["call_id"], detail["attempt"]) for detail in started} <= client, schedule
    assert server <= client, schedule


@pytest.mark.parametrize(
    ("alternative", "schedules"),
    often(
        [(each, count) for each in SLACK_S for count in (FEW, MANY)], (Cooperative(), FEW), (AsyncCancellation(), FEW)
    ),
    ids=str,
)
def test_each_alternative_keeps_its_contract_under_many_schedules(
    alternative: Alternative, schedules: int, system: SimulatedSystem
) -> None:
    order = order_of(alternative)
    for schedule in range(schedules):
        check(system.measure(order, OPTIONS, schedule=schedule), SLACK_S[alternative], schedule)
