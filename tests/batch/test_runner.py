"""Cells over workers: everything is computed once, a stalled or dead worker is replaced, a stop is heard."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

import pytest

from docmind_lab.batch import Cell, CellResult, Simulated, Workers, in_this_process, run_cells
from docmind_lab.batch.cells import cells_of
from docmind_lab.errors import ConfigurationError, SimulationError
from docmind_lab.services.server import ServiceOptions
from docmind_lab.settings import Settings

SYSTEM = Simulated(Settings(), ServiceOptions())
CELLS = [Cell(f"{number:03}", (), SYSTEM) for number in range(5)]


class Scripted(Executor):
    """Does `act` for each cell; a failure of the pool is raised by the future, as a real pool does."""

    made = 0

    def __init__(self, act: Callable[[Cell], CellResult]) -> None:
        self.act = act
        Scripted.made += 1

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self.act(args[0]))
        except Exception as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


def results(act: Callable[[Cell], CellResult], stop: threading.Event | None = None) -> list[CellResult]:
    Scripted.made = 0
    with Workers(lambda: Scripted(act), window=2) as workers:
        return list(run_cells(CELLS, workers, stop))


def test_every_cell_is_computed_once() -> None:
    asked: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        asked[cell.id] += 1
        return CellResult(cell.id)

    assert sorted(result.cell_id for result in results(act)) == [cell.id for cell in CELLS]
    assert set(asked.values()) == {1}


def test_a_stalled_cell_comes_back_with_its_reason_and_its_worker_is_replaced() -> None:
    done = results(lambda cell: CellResult(cell.id, stalled="a socket" if cell.id == "001" else ""))
    assert [result.stalled for result in done if result.cell_id == "001"] == ["a socket"]
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]
    assert Scripted.made == 2


def test_a_cell_whose_worker_died_is_computed_again() -> None:
    tries: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        tries[cell.id] += 1
        if cell.id == "002" and tries[cell.id] < 3:
            raise BrokenExecutor("killed")
        return CellResult(cell.id)

    assert sorted(result.cell_id for result in results(act)) == [cell.id for cell in CELLS]
    assert tries["002"] == 3


def test_a_cell_that_ends_its_worker_each_time_is_given_up_by_name() -> None:
    def act(cell: Cell) -> CellResult:
        if cell.id == "002":
            raise BrokenExecutor("killed")
        return CellResult(cell.id)

    with pytest.raises(SimulationError, match="cell 002 ended its worker 3 times"):
        results(act)


def test_a_defect_in_a_run_is_raised() -> None:
    def act(cell: Cell) -> CellResult:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        results(act)


def test_after_a_stop_no_further_cell_is_begun() -> None:
    stop, asked = threading.Event(), []

    def act(cell: Cell) -> CellResult:
        asked.append(cell.id)
        stop.set()
        return CellResult(cell.id)

    assert results(act, stop) == []
    assert len(asked) <= 2, "those in the window at most"


def test_cells_hold_the_orders_in_their_order_and_are_named_by_their_place() -> None:
    orders: Any = list(range(25))
    cells = cells_of(orders, SYSTEM, runs_per_cell=10)
    assert [cell.id for cell in cells] == ["000", "001", "002"]
    assert [order for cell in cells for order in cell.orders] == orders


def test_an_executor_without_processes_gives_results_and_errors_as_any_does() -> None:
    with in_this_process()() as executor:
        assert executor.submit(lambda: 3).result() == 3
        with pytest.raises(ZeroDivisionError):
            executor.submit(lambda: 1 / 0).result()


def test_a_number_of_workers_below_one_is_refused() -> None:
    from docmind_lab.batch import processes

    with pytest.raises(ConfigurationError, match="workers must be 1 or more, not 0"):
        processes(0)
