"""Cells over workers: everything is computed once, a stalled or dead worker is replaced, a stop is heard."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

import pytest
from loky.process_executor import ShutdownExecutorError

from docmind_lab.core.errors import ConfigurationError, SimulationError, SimulationStalled
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, CellResult, Simulated, Workers, in_this_process, run_cells
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.services.server import ServiceOptions

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


def test_a_stalled_cell_is_computed_once_more_and_its_worker_replaced() -> None:
    tries: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        tries[cell.id] += 1
        return CellResult(cell.id, stalled="a socket" if cell.id == "001" and tries[cell.id] == 1 else "")

    done = results(act)
    assert [result.error for result in done] == [None] * len(CELLS)
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]
    assert Scripted.made == 2


def test_a_cell_that_stalls_twice_comes_back_with_its_reason() -> None:
    done = results(lambda cell: CellResult(cell.id, stalled="r-7: a socket" if cell.id == "001" else ""))
    (lost,) = [result for result in done if result.error is not None]
    assert (lost.cell_id, str(lost.error)) == ("001", "run r-7: a socket")
    assert isinstance(lost.error, SimulationStalled)


def test_a_cell_whose_worker_died_is_computed_once_more() -> None:
    tries: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        tries[cell.id] += 1
        if cell.id == "002" and tries[cell.id] == 1:
            raise BrokenExecutor("killed")
        return CellResult(cell.id)

    done = results(act)
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]
    assert [result.error for result in done] == [None] * len(CELLS)
    assert tries["002"] == 2


def test_a_cell_that_ends_its_worker_twice_is_given_up_by_name_and_no_other_is() -> None:
    def act(cell: Cell) -> CellResult:
        if cell.id == "002":
            raise BrokenExecutor("killed")
        return CellResult(cell.id)

    done = results(act)
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]
    (lost,) = [result for result in done if result.error is not None]
    assert lost.cell_id == "002"
    assert "cell 002 ended its worker: killed" in str(lost.error)
    assert isinstance(lost.error, SimulationError)


def test_when_a_pool_breaks_those_in_it_go_alone_so_that_blame_falls_on_one() -> None:
    breaks: list[int] = []

    class Breaking(Executor):
        """Breaks, and with it all that it has, when cell 001 is in it; until then it keeps what it is given."""

        def __init__(self) -> None:
            self.held: list[Future[CellResult]] = []

        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            self.held.append(future)
            if args[0].id == "001":
                breaks.append(len(self.held))
                for other in self.held:
                    other.set_exception(BrokenExecutor("killed"))
            elif breaks:
                future.set_result(CellResult(args[0].id))
                self.held.clear()
            return future

    with Workers(Breaking, window=2) as workers:
        done = list(run_cells(CELLS, workers))
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]
    assert [result.cell_id for result in done if result.error is not None] == ["001"]
    assert breaks == [2, 1], "with another cell, and then alone"


def test_a_defect_in_a_run_comes_back_after_a_second_try() -> None:
    asked: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        asked[cell.id] += 1
        raise ZeroDivisionError

    done = results(act)
    assert {type(result.error) for result in done} == {ZeroDivisionError}
    assert set(asked.values()) == {2}


def test_cells_of_which_nothing_is_heard_are_lost_after_a_while() -> None:
    with Workers(Silent, window=1) as workers:
        done = list(run_cells(CELLS[:1], workers, patience_s=0.0))
    assert "no cell was done for 0 s" in str(done[0].error)


def test_somebody_elses_executor_is_neither_ended_nor_replaced() -> None:
    executor = Scripted(lambda cell: CellResult(cell.id, stalled="a socket" if cell.id == "001" else ""))
    Scripted.made = 0
    with Workers.of(executor, window=2) as workers:
        assert len(list(run_cells(CELLS, workers))) == len(CELLS)
    assert Scripted.made == 0


class Ended(Executor):
    """A pool of loky's that was shut down."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise ShutdownExecutorError("cannot schedule new futures after shutdown")


def test_a_pool_that_somebody_else_ended_is_replaced_and_every_cell_is_computed() -> None:
    pools = iter([Ended(), Scripted(lambda cell: CellResult(cell.id))])
    with Workers(lambda: next(pools), window=2) as workers:
        done = list(run_cells(CELLS, workers))
    assert [result.error for result in done] == [None] * len(CELLS)
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]


def test_what_was_under_way_in_a_pool_that_somebody_else_ended_is_computed_again() -> None:
    class EndedMeanwhile(Ended):
        """Takes two cells, of which nothing is heard but the end."""

        taken = 0

        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            self.taken += 1
            if self.taken > 2:
                return super().submit(function, *args, **kwargs)
            future: Future[Any] = Future()
            future.set_exception(ShutdownExecutorError("was shutdown before this job could complete"))
            return future

    pools = iter([EndedMeanwhile(), Scripted(lambda cell: CellResult(cell.id))])
    with Workers(lambda: next(pools), window=2) as workers:
        done = list(run_cells(CELLS, workers))
    assert [result.error for result in done] == [None] * len(CELLS)
    assert sorted(result.cell_id for result in done) == [cell.id for cell in CELLS]


class Silent(Executor):
    """Takes cells and never says a word of them."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_a_stop_cancels_what_waits_in_a_pool_that_goes_on() -> None:
    silent, stop = Silent(), threading.Event()
    stop.set()
    assert list(run_cells(CELLS, Workers(lambda: silent, window=2), stop)) == []
    assert [future.cancelled() for future in silent.futures] == [True, True]


def test_an_interrupt_leaves_what_waits_to_the_end_of_its_pool() -> None:
    def interrupted() -> Any:
        yield from CELLS[:2]
        raise KeyboardInterrupt

    silent = Silent()
    with pytest.raises(KeyboardInterrupt):
        list(run_cells(interrupted(), Workers(lambda: silent, window=4)))
    # loky ends a pool by an error in each of its futures, which one that was cancelled does not take.
    assert [future.cancelled() for future in silent.futures] == [False, False]


def test_an_executor_that_its_owner_ended_is_an_error_and_no_cells_fault() -> None:
    with Workers.of(Ended(), window=2) as workers, pytest.raises(ShutdownExecutorError, match="after shutdown"):
        list(run_cells(CELLS, workers))


def test_a_pool_of_threads_is_refused() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(ConfigurationError, match="a pool of threads"):
        Workers.of(pool)


def test_after_a_stop_no_further_cell_is_begun_and_what_is_done_comes_back() -> None:
    stop, asked = threading.Event(), []

    def act(cell: Cell) -> CellResult:
        asked.append(cell.id)
        stop.set()
        return CellResult(cell.id)

    assert sorted(result.cell_id for result in results(act, stop)) == sorted(asked)
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
    from docmind_lab.experiments.batch import processes

    with pytest.raises(ConfigurationError, match="workers must be 1 or more, not 0"):
        processes(0)
