"""The engine of a panel: the newest request wins, a stop is heard, what is known is there, nothing stays behind."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from loky.process_executor import ShutdownExecutorError
from scripted_runs import PATIENCE_S, SMALL, Scripted, measured_of

from docmind_lab.core.randomness import run_seed
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated, Workers
from docmind_lab.experiments.comparison.comparison import simulated
from docmind_lab.experiments.measurement.measured_run import RunOrder
from docmind_lab.views.panels.engine import Engine, KnownRuns, Newest
from docmind_lab.views.panels.panel_run import PanelRun
from docmind_lab.views.panels.panel_settings import PanelChoice


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


def test_what_is_known_comes_at_once_and_is_not_computed_again() -> None:
    executor = Scripted()
    engine, heard = _engine(executor)
    for choice in (SMALL, dataclasses.replace(SMALL, decision_timeout_s=8.0), SMALL):
        engine.request(choice)
        assert engine.wait(PATIENCE_S)
    assert len(executor.asked) == 12
    last = [sweep for sweep in heard if sweep.number == 3]
    assert [(len(sweep.measured), sweep.state) for sweep in last] == [(6, "running"), (6, "done")]


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
        ({"alternatives": ("A:per_read",), "deadline_propagation": "on"}, Settings(), "A:per_read"),
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


# ---- runs that need not be computed again


def _orders(choice: PanelChoice) -> tuple[list[RunOrder], Simulated]:
    comparison = choice.comparison(Settings())
    return comparison.orders(), simulated(comparison, Settings())


def test_a_run_comes_back_under_the_names_of_who_asks() -> None:
    known = KnownRuns()
    orders, system = _orders(SMALL)
    for order in orders:
        known.keep(order, system, measured_of(order))
    # Another number of alternatives is another study, whose runs have other names.
    others, other_system = _orders(dataclasses.replace(SMALL, alternatives=("B", "A", "C")))
    found = [known.find(order, other_system) for order in others]
    again = {order.facts.run_id: measured_of(order) for order in others}
    assert [run is None for run in found] == [order.facts.alternative == "async_cancellation" for order in others]
    # By their text: a NaN is not equal to another.
    assert all(repr(run) == repr(again[run.run.run_id]) for run in found if run is not None)
    assert {run.run.study_id for run in found if run is not None} == {others[0].facts.study_id}


def test_every_setting_tells_runs_apart() -> None:
    known, (orders, system) = KnownRuns(), _orders(SMALL)
    for order in orders:
        known.keep(order, system, measured_of(order))
    changes = (
        {"decision_timeout_s": 19.0},
        {"seed": 50},
        {"deadline_propagation": "off", "alternatives": ("A",)},
        {"alternatives": ("A+hedge:2s",)},
        {"router_injection": True},
        {"latency_profile": "typical"},
        {"fault": "hang"},
        {"server": "goes-on"},
    )
    for change in changes:
        others, other_system = _orders(dataclasses.replace(SMALL, **change))
        assert [known.find(order, other_system) for order in others] == [None] * len(others), change


def test_the_oldest_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docmind_lab.views.panels.engine.MOST_KNOWN_RUNS", 4)
    known, (orders, system) = KnownRuns(), _orders(SMALL)
    for order in orders:
        known.keep(order, system, measured_of(order))
    assert [known.find(order, system) is not None for order in orders] == [False, False, True, True, True, True]
