"""Whatever the order of threads and tasks, and whatever the fault, each alternative keeps its contract.

The contract: back by the deadline plus the alternative's documented slack; one typed outcome; no row lost.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, get_args

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
from docmind_lab.core.lateness import RETURN_SLACK_S
from docmind_lab.core.levels import STOP_REASONS, RunOutcome
from docmind_lab.core.server_behaviour import GOES_ON
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import FAULT_KINDS, Fault
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
FEW, MANY = 13, 40  # of two alternatives, and of each of eight: three hundred schedules
# Instants are sums of many durations: the last bits of a deadline are not those of what is compared with it.
ROUNDING_S = 1e-6


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), corpus=handbook())
    yield made
    made.close()


def order_of(alternative: Alternative, timeout_s: float = TIMEOUT_S, **others: Any) -> RunOrder:
    """A question of two parts, so that two retrieval agents run side by side when the deadline falls."""
    comparison = Comparison(
        decision_timeout_s=timeout_s,
        runs=12,
        seed=3,
        alternatives=(alternative,),
        profile=OPTIONS.profile,
        documents=Documents("handbook"),
        **others,
    )
    return next(order for order in comparison.orders() if others or order.question.complex)


def check(measured: MeasuredRun, slack_s: float | None, said: object, *, has_hops: bool = False) -> None:
    run = measured.run
    assert run.outcome in get_args(RunOutcome), said
    assert run.stop_reason in STOP_REASONS, said
    returns = [event.event for event in measured.events].count("returned")
    assert returns == (run.outcome != "unfinished") == (run.returned_at_s == run.returned_at_s), said
    assert bool(measured.outcome.error_type) >= (run.outcome == "failed"), said
    assert bool(measured.outcome.answer) >= (run.outcome == "answered"), said
    if slack_s is not None:
        assert run.caller_overrun_s <= slack_s + ROUNDING_S, said
    keys = [(call.call_id, call.attempt, call.seen_from) for call in measured.calls]
    assert len(set(keys)) == len(keys), said
    client = {(call.call_id, call.attempt): call for call in measured.calls if call.seen_from == "client"}
    server = {(call.call_id, call.attempt) for call in measured.calls if call.seen_from == "server"}
    started = [event.detail for event in measured.events if event.event == "attempt_started"]
    assert {(detail["call_id"], detail["attempt"]) for detail in started} <= client.keys(), said
    answered = {key for key, call in client.items() if call.outcome in ("ok", "error") and call.first_byte_at_s >= 0}
    assert answered <= server, said
    # What services ask of each other, no client of the run has seen.
    assert has_hops or server <= client.keys(), said


@pytest.mark.parametrize(
    ("alternative", "schedules"),
    often(
        [(Cooperative(), FEW), (AsyncCancellation(), FEW), *((each, MANY) for each in SLACK_S)],
        *((Cooperative(), FEW), (AsyncCancellation(), FEW)),
    ),
    ids=str,
)
def test_each_alternative_keeps_its_contract_under_many_schedules(
    alternative: Alternative, schedules: int, system: SimulatedSystem
) -> None:
    order = order_of(alternative)
    for schedule in range(schedules):
        check(system.measure(order, OPTIONS, schedule=schedule), SLACK_S[alternative], schedule)


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_alternative_keeps_its_contract_under_every_fault(kind: str, system: SimulatedSystem) -> None:
    options = ServiceOptions(OPTIONS.profile, (Fault.parse(kind),))
    for alternative, slack_s in {**SLACK_S, Native(per_step=True): None}.items():
        check(system.measure(order_of(alternative, 6.0), options), slack_s, alternative)


@pytest.mark.parametrize(("kind", "tries"), [("disconnect", 2), ("empty", 1)])
def test_a_broken_reply_is_tried_again_or_named_and_never_taken_for_an_answer(
    kind: str, tries: int, system: SimulatedSystem
) -> None:
    options = ServiceOptions(OPTIONS.profile, (Fault.parse(f"{kind}:synthesis"),))
    for alternative in (Cooperative(), Hybrid()):
        measured = system.measure(order_of(alternative, 100.0), options)
        broken = [call for call in measured.calls if (call.role, call.seen_from) == ("synthesis", "client")]
        assert len(broken) % tries == 0 < len(broken), alternative
        assert (measured.run.outcome == "failed") == (kind == "disconnect"), alternative
        assert not measured.run.answer_score > 0.0, alternative


def test_each_alternative_keeps_its_contract_over_a_tree_of_services_too() -> None:
    options = ServiceOptions(OPTIONS.profile, adoption=0.5, behaviour=GOES_ON)
    with contextlib.closing(SimulatedSystem(Settings(), kind="hops")) as hops:
        for alternative, slack_s in SLACK_S.items():
            order = order_of(alternative, 10.0, workload="hops", adoption=0.5, server_behaviour=GOES_ON)
            outcomes = set()
            for schedule in range(FEW):
                measured = hops.measure(order, options, schedule=schedule)
                check(measured, slack_s, (alternative, schedule), has_hops=True)
                outcomes.add((measured.run.outcome, measured.run.documents_count))
            assert len(outcomes) == 1, alternative
