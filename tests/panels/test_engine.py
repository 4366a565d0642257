"""The engine of a panel: the newest request wins, a stop is heard, nothing stays behind."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from loky.process_executor import ShutdownExecutorError
from scripted_runs import PATIENCE_S, SMALL, Scripted

from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Workers
from docmind_lab.views.panels.engine import Engine, Newest
from docmind_lab.views.panels.panel_run import PanelRun


def _engine(executor: Scripted) -> tuple[Engine, list[PanelRun]]:
    heard: list[PanelRun] = []
    return Engine(heard.append, workers=executor.workers), heard


def test_a_request_grows_run_by_run_to_its_end() -> None:
    engine, heard = _engine(Scripted())
    engine.request(SMALL)
    assert engine.wait(PATIENCE_S)
    assert [(len(sweep.measured), sweep.state) for sweep in heard] == [*((n, "running") for n in range(7)), (6, "done")]
    assert {sweep.total for sweep in heard} == {6}
    assert [item.run.seed for item in heard[-1].measured] == [
        run_seed(7, repeat) for repeat in (1, 2, 3) for _ in "AB"
    ], "the first question first, which is the one in front"


def test_an_outdated_request_ends_within_one_run_and_is_not_heard_of_again() -> None:
    executor = Scripted(held=True)
    engine, heard = _engine(executor)
    engine.request(dataclasses.replace(SMALL, runs=50))
    executor.until_asked(2)
    newest = engine.request(dataclasses.replace(SMALL, decision_timeout_s=8.0))
    executor.let_go(2)
    executor.let_go(6)
    assert engine.wait(PATIENCE_S)
    # Two were under way, one for each worker; none of the other 98 was begun.
    assert executor.timeouts_s == [20.0] * 2 + [8.0] * 6
    assert [sweep.number for sweep in heard if sweep.measured] == [newest] * 7


@pytest.mark.parametrize(
    ("changes", "settings", "what"),
    [
        ({"alternatives": ()}, Settings(), "alternatives must name at least one"),
        ({}, Settings(agents={"enable_deadline_propagation": False}), "enable_deadline_propagation"),
    ],
)
def test_what_goes_wrong_is_said_and_the_next_request_works(changes, settings, what) -> None:
    executor = Scripted()
    heard: list[PanelRun] = []
    engine = Engine(heard.append, workers=executor.workers, settings=settings)
    engine.request(dataclasses.replace(SMALL, **changes))
    assert engine.wait(PATIENCE_S)
    assert heard[-1].state == "failed"
    assert what in str(heard[-1].error)
    assert executor.asked == []
    engine.request(dataclasses.replace(SMALL, alternatives=("control",)))
    assert engine.wait(PATIENCE_S)
    assert heard[-1].state == "done"


def test_processes_that_somebody_else_ended_are_replaced() -> None:
    class Ended(Scripted):
        def submit(self, function, /, *args, **kwargs):
            raise ShutdownExecutorError("cannot schedule new futures after shutdown")

    executors = iter([Ended(), Scripted()])
    heard: list[PanelRun] = []
    engine = Engine(heard.append, workers=lambda: Workers(lambda: next(executors), window=2))
    engine.request(SMALL)
    assert engine.wait(PATIENCE_S)
    assert (heard[-1].state, len(heard[-1].measured)) == ("done", 6)


def test_a_defect_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda report: reported.append(report.exc_type))

    def do(_: int) -> None:
        raise ZeroDivisionError

    newest = Newest(do, "test-newest-defect")
    newest.ask(1)
    assert newest.wait(PATIENCE_S)
