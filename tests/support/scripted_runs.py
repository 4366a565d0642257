"""Made-up runs for whatever order a panel gives, computed by an executor that the test holds back or lets go."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future
from dataclasses import fields
from typing import Any

from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.batch import Cell, CellResult, Workers
from docmind_lab.experiments.measurement.run import MeasuredRun, RunOrder
from docmind_lab.tables.records import EventRecord, RunRecord
from docmind_lab.views.panels.choice import PanelChoice

# Far more than a made-up run takes on any machine; only a defect makes anybody wait so long.
PATIENCE_S = 60.0
SMALL = PanelChoice(runs=3, alternatives=("A", "B"), corpus="handbook")


def measured_of(order: RunOrder) -> MeasuredRun:
    """A run that takes as many seconds as its place among the repeats says, and is cut at its deadline."""
    facts = order.facts
    known = {field.name for field in fields(RunRecord)}
    shared = {name: value for name, value in vars(facts).items() if name in known - {"alternative"}}
    needed_s = 10.0 + int(facts.run_id.rpartition("-")[2])
    in_time = needed_s < facts.decision_timeout_s
    returned_s = min(needed_s, facts.decision_timeout_s)
    run = sample_run(
        facts.alternative,
        facts.seed,
        **shared
        | {
            "returned_at_s": returned_s,
            "quiescent_at_s": returned_s,
            "outcome": "answered" if in_time else "timed_out",
            "answered_in_time": in_time,
        },
    )
    names: dict[str, Any] = {"study_id": facts.study_id, "alternative": facts.alternative}
    calls = tuple(
        call(facts.run_id, role, at_s, at_s + 1.0, seen_from=seen_from, **names)
        for seen_from in ("client", "server")
        for role, at_s in (("router", 0.0), ("synthesis", 1.0))
    )
    events = (EventRecord(facts.study_id, facts.run_id, 0.0, "run_started", "", "{}"),)
    return MeasuredRun(run, calls, events, Outcome("answered" if in_time else "timed_out"))


class Scripted(Executor):
    """Computes runs at once, or, held back, one for each `let_go`. asked: ids of the runs, in their order."""

    def __init__(self, *, held: bool = False) -> None:
        self.asked: list[str] = []
        self.timeouts_s: list[float] = []
        self._allowed = threading.Semaphore(0) if held else None
        self._futures: list[tuple[Future[CellResult], Cell]] = []
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        cell: Cell = args[0]
        future: Future[CellResult] = Future()
        with self._arrived:
            self.asked.append(cell.id)
            self.timeouts_s.append(cell.orders[0].facts.decision_timeout_s)
            self._futures.append((future, cell))
            self._arrived.notify_all()
        if self._allowed is None:
            self._finish()
        return future

    def let_go(self, runs: int = 1) -> None:
        """Finish the next runs, waiting for them to be asked for."""
        for _ in range(runs):
            with self._arrived:
                assert self._arrived.wait_for(lambda: self._futures, PATIENCE_S)
            self._finish()

    def until_asked(self, runs: int) -> None:
        """Return once so many runs have been asked for in all."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.asked) >= runs, PATIENCE_S)

    def _finish(self) -> None:
        with self._lock:
            future, cell = self._futures.pop(0)
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(CellResult(cell.id, tuple(measured_of(order) for order in cell.orders)))
            except Exception as error:  # noqa: BLE001 - an executor hands whatever is raised to the future
                future.set_exception(error)

    def workers(self) -> Workers:
        """Workers that have this executor, two runs at a time."""
        return Workers(lambda: self, window=2)
