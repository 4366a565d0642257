"""Small studies for tests of sweeps: a real one of eight runs in four cells, and executors that make their runs up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pandas as pd
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.batch import Cell, CellResult
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.experiments.measurement.run import MeasuredRun, RunOrder
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


@contextmanager
def small_cells(runs_per_cell: int = 2) -> Iterator[None]:
    """Cells of so few runs that a small study has several."""

    def cells(*args: Any, **kwargs: Any) -> list[Cell]:
        orders, system, _ = args
        return cells_of(orders, system, runs_per_cell, **kwargs)

    with patch("docmind_lab.experiments.sweeps.runner.cells_of", cells):
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
    event = EventRecord(facts.study_id, facts.run_id, 0.0, "run_started", "", "{}")
    return MeasuredRun(run, (), (event,), Outcome("answered"))


def made_up_cell(cell: Cell) -> CellResult:
    """A cell of made-up runs."""
    return CellResult(cell.id, tuple(map(made_up, cell.orders)))


class Scripted(Executor):
    """Does `act` for each cell it is given, at once; with a window of two cells. asked: their ids."""

    _max_workers = 1

    def __init__(self, act: Callable[[Cell], CellResult] = made_up_cell) -> None:
        self.act = act
        self.asked: list[str] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        cell, _ = args
        self.asked.append(cell.id)
        future: Future[Any] = Future()
        try:
            future.set_result(self.act(cell))
        except Exception as error:  # noqa: BLE001 - an executor hands whatever is raised to the future
            future.set_exception(error)
        return future
