"""Small studies for tests of sweeps: a real one of eight runs in four cells, and executors that make their runs up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pandas as pd
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.batch import Cell, CellResult, Workers
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.findings.study import Study
from docmind_lab.tables.records import TABLES, EventRecord

# Budgets that cut some runs and not others, so that tables hold every kind of row.
DESIGN: dict[str, Any] = {
    "name": "small",
    "documents": "handbook",
    "repeats": 2,
    "factors": {"alternative": "A,B", "decision_timeout_s": [5, 30], "latency_profile": "typical"},
}
CELLS, RUNS = 4, 8
# Far more than a made-up cell takes on any machine; only a defect makes anybody wait so long.
PATIENCE_S = 60.0


@contextmanager
def small_cells(runs_per_cell: int = 2) -> Iterator[None]:
    """Cells of so few runs that a small study has several."""

    def cells(*args: Any, **kwargs: Any) -> list[Cell]:
        orders, system, _ = args
        return cells_of(orders, system, runs_per_cell, **kwargs)

    with patch("docmind_lab.experiments.sweeps.sweep_run.cells_of", cells):
        yield


@contextmanager
def computed_by(executor: Executor) -> Iterator[None]:
    """Comparisons and studies whose cells in virtual time an executor of the test's computes."""
    runner = "docmind_lab.experiments.comparison.cell_runner.workers_for"
    with patch(runner, lambda *_: Workers(lambda: executor)):
        yield


def assert_same_tables(one: Study, other: Study) -> None:
    """Every value of every table, floats to their last bit."""
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name), check_exact=True)


def made_up(order: RunOrder) -> MeasuredRun:
    """A run as the order has it, of which nothing was measured."""
    facts = order.facts
    run = sample_run(
        facts.alternative,
        facts.seed,
        study_id=facts.study_id,
        run_id=facts.run_id,
        alternative_options=facts.alternative_options,
        decision_timeout_s=facts.decision_timeout_s,
    )
    event = EventRecord(facts.study_id, facts.run_id, 0.0, "run_started", "", {})
    return MeasuredRun(run, (), (event,), Outcome("answered"))


def made_up_cell(cell: Cell) -> CellResult:
    """A cell of made-up runs."""
    return CellResult(cell.id, tuple(map(made_up, cell.orders)))


class Scripted(Executor):
    """Does `act` for each cell it is given: at once, or, held back, one for each `let_go`. asked: ids of the cells."""

    _max_workers = 1

    def __init__(self, act: Callable[[Cell], CellResult] = made_up_cell, *, held: bool = False) -> None:
        self.act, self.held = act, held
        self.asked: list[str] = []
        self.timeouts_s: list[float] = []
        self._waiting: list[tuple[Future[CellResult], Cell]] = []
        self._arrived = threading.Condition()

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        cell: Cell = args[0]
        future: Future[CellResult] = Future()
        with self._arrived:
            self.asked.append(cell.id)
            self.timeouts_s += [order.facts.decision_timeout_s for order in cell.orders[:1]]
            self._waiting.append((future, cell))
            self._arrived.notify_all()
        if not self.held:
            self._finish()
        return future

    def let_go(self, cells: int = 1) -> None:
        """Finish the next cells, waiting for them to be asked for."""
        for _ in range(cells):
            with self._arrived:
                assert self._arrived.wait_for(lambda: self._waiting, PATIENCE_S)
            self._finish()

    def until_asked(self, cells: int) -> None:
        """Return once so many cells have been asked for in all."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.asked) >= cells, PATIENCE_S)

    def _finish(self) -> None:
        with self._arrived:
            future, cell = self._waiting.pop(0)
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(self.act(cell))
            except Exception as error:  # noqa: BLE001 - an executor hands whatever is raised to the future
                future.set_exception(error)
