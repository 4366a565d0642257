"""One run and its observation, with a workload and a service log made up for the purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from run_facts import facts

from docmind_lab.alternatives import Outcome
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ServiceError
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.network import Attempt
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.log import RequestRow
from docmind_lab.systems.base.questions import Question

# These runs last some hundredths of a second: the horizon is only reached where a test is about reaching it.
TIMEOUT_S, HORIZON_S = 0.1, 0.3


@dataclass(frozen=True)
class Scripted:
    """An alternative that does what a test says."""

    act: Callable[[Recorder], Outcome]

    name = "cooperative"
    letter = "A"
    propagates = True
    node_mode = "sync"
    client_retries = False

    def run(self, runnable: Any, inputs: Mapping[str, Any], deadline: Deadline, recorder: Recorder) -> Outcome:
        return self.act(recorder)


@dataclass
class MadeUpLog:
    """A service's log."""

    rows_now: list[RequestRow] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def rows(self, run_id: str, wait_quiet_s: float = 0.0) -> list[RequestRow]:
        return list(self.rows_now)

    def forget(self, run_id: str) -> None:
        self.forgotten.append(run_id)


class MadeUpWorkload:
    """A system that is not run at all."""

    name = "supervisor"

    def __init__(self) -> None:
        self.forgotten: list[str] = []

    def runnable(self, recorder: Recorder, question: Any) -> Any:
        return None

    def inputs(self, question: Question) -> dict[str, Any]:
        return {}

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        return 0.5, 0.25

    def forget(self, run_id: str) -> None:
        self.forgotten.append(run_id)


def measured(act: Callable[[Recorder], Outcome], log: MadeUpLog | None = None) -> MeasuredRun:
    order = RunOrder(facts(decision_timeout_s=TIMEOUT_S, horizon_s=HORIZON_S), Scripted(act), Question("q", "?"))
    return measure(order, MadeUpWorkload(), log or MadeUpLog())


def test_an_answer_is_recorded_with_its_scores_and_the_run_ends_when_it_is_quiet() -> None:
    run = measured(lambda recorder: Outcome("answered", "yes", ({"id": "a"},))).run
    assert (run.outcome, run.documents_count, run.source_recall, run.answer_score) == ("answered", 1, 0.5, 0.25)
    assert run.answered_in_time
    assert not run.work_censored


def test_a_request_on_its_way_to_the_service_is_waited_for() -> None:
    log = MadeUpLog()

    def send(recorder: Recorder) -> Outcome:
        with recorder.call("llm", "router", "0.0") as call:
            attempt = Attempt(call, 1, recorder.clock.now())
            recorder.attempt_started(attempt)
            attempt.note_sent()
            attempt.end("cancelled")
        now = recorder.clock.now()
        arrived = RequestRow("llm", "r", call.call_id, 1, "router", call.step, now, ended_at=now, outcome="client_gone")
        threading.Timer(0.05, log.rows_now.append, [arrived]).start()
        return Outcome("timed_out")

    assert [call.seen_from for call in measured(send, log).calls] == ["client", "server"]


def test_a_defect_of_an_alternative_is_raised_and_nothing_is_left_behind() -> None:
    log = MadeUpLog()

    def fail(recorder: Recorder) -> Outcome:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measured(fail, log)
    assert log.forgotten == ["r"]


def test_a_run_is_forgotten_by_its_workload_even_where_the_service_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study that ends early takes its services away first; the hooks of its runs must not stay."""

    def gone(log: MadeUpLog, run_id: str) -> None:
        raise ServiceError("the service is gone")

    monkeypatch.setattr(MadeUpLog, "forget", gone)
    workload = MadeUpWorkload()
    order = RunOrder(
        facts(decision_timeout_s=TIMEOUT_S, horizon_s=HORIZON_S),
        Scripted(lambda recorder: Outcome("answered")),
        Question("q", "?"),
    )
    with pytest.raises(ServiceError):
        measure(order, workload, MadeUpLog())
    assert workload.forgotten == ["r"]


def test_an_answer_that_came_after_the_horizon_while_nobody_looked_is_not_in_the_run() -> None:
    """The harness looks late: the caller is back and all is quiet by then, and the run was unfinished all the same."""

    class LateLog(MadeUpLog):
        def rows(self, run_id: str, wait_quiet_s: float = 0.0) -> list[RequestRow]:
            came_back.wait()
            return super().rows(run_id, wait_quiet_s)

    came_back = threading.Event()

    def late(recorder: Recorder) -> Outcome:
        recorder.clock.sleep(HORIZON_S + 0.05)
        threading.Timer(0.05, came_back.set).start()
        return Outcome("answered", "too late")

    run = measured(late, LateLog()).run
    assert (run.outcome, run.work_censored) == ("unfinished", True)
    assert run.returned_at_s != run.returned_at_s
