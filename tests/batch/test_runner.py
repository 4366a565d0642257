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
from docmind_lab.experiments.batch import Cell, CellResult, InThisProcess, Simulated, Workers, processes, run_cells
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.services.server import ServiceOptions

SYSTEM = Simulated(Settings(), ServiceOptions())
CELLS = [Cell(f"{number:03}", (), SYSTEM) for number in range(5)]
IDS = [cell.id for cell in CELLS]
Act = Callable[[Cell], CellResult]


class Scripted(Executor):
    """Does `act` for each cell; a failure of the pool is raised by the future, as a real pool does."""

    made = 0

    def __init__(self, act: Act = lambda cell: CellResult(cell.id)) -> None:
        self.act = act
        Scripted.made += 1

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self.act(args[0]))
        except Exception as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


def results(act: Act, stop: threading.Event | None = None) -> list[CellResult]:
    Scripted.made = 0
    with Workers(lambda: Scripted(act), window=2) as workers:
        return list(run_cells(CELLS, workers, stop))


def raising(error: Exception, times: int, only: str = "001") -> tuple[Act, Counter[str]]:
    """What loses a cell so many times, by raising or by a stall, and how often each cell was tried."""
    tries: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        tries[cell.id] += 1
        if cell.id != only or tries[cell.id] > times:
            return CellResult(cell.id)
        if isinstance(error, SimulationStalled):
            return CellResult(cell.id, stalled=str(error))
        raise error

    return act, tries


LOSSES = {
    "no worker": (BrokenExecutor("killed"), SimulationError, "cell 001 ended its worker: killed"),
    "a stall": (SimulationStalled("r-7: a socket"), SimulationStalled, "run r-7: a socket"),
    "a defect": (ZeroDivisionError("a defect"), ZeroDivisionError, "a defect"),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_cell_that_is_lost_once_is_computed_once_more_and_no_other_is(loss: str) -> None:
    act, tries = raising(LOSSES[loss][0], times=1)
    done = results(act)
    assert sorted(result.cell_id for result in done) == IDS
    assert [result.error for result in done] == [None] * len(CELLS)
    assert tries == {**dict.fromkeys(IDS, 1), "001": 2}
    assert Scripted.made == (1 if loss == "a defect" else 2), "a pool that broke or stalled is replaced"


@pytest.mark.parametrize("loss", LOSSES)
def test_a_cell_that_is_lost_twice_comes_back_with_its_reason_and_no_other_does(loss: str) -> None:
    error, kind, said = LOSSES[loss]
    act, tries = raising(error, times=9)
    done = results(act)
    assert sorted(result.cell_id for result in done) == IDS
    (lost,) = [result for result in done if result.error is not None]
    assert (lost.cell_id, str(lost.error), tries["001"]) == ("001", said, 2)
    assert isinstance(lost.error, kind)


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
    assert sorted(result.cell_id for result in done) == IDS
    assert [result.cell_id for result in done if result.error is not None] == ["001"]
    assert breaks == [2, 1], "with another cell, and then alone"


def test_somebody_elses_executor_is_neither_ended_nor_replaced() -> None:
    executor = Scripted(raising(SimulationStalled("a socket"), times=9)[0])
    Scripted.made = 0
    with Workers.of(executor, window=2) as workers:
        assert len(list(run_cells(CELLS, workers))) == len(CELLS)
    assert Scripted.made == 0
    with Workers.of(Ended(), window=2) as workers, pytest.raises(ShutdownExecutorError, match="after shutdown"):
        list(run_cells(CELLS, workers))


class Ended(Executor):
    """A pool of loky's that was shut down, after it took some cells, of which nothing is heard but the end."""

    def __init__(self, takes: int = 0) -> None:
        self.takes = takes

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if not self.takes:
            raise ShutdownExecutorError("cannot schedule new futures after shutdown")
        self.takes -= 1
        future: Future[Any] = Future()
        future.set_exception(ShutdownExecutorError("was shutdown before this job could complete"))
        return future


@pytest.mark.parametrize("takes", [0, 2])
def test_a_pool_that_somebody_else_ended_is_replaced_and_every_cell_is_computed(takes: int) -> None:
    pools = iter([Ended(takes), Scripted()])
    with Workers(lambda: next(pools), window=2) as workers:
        done = list(run_cells(CELLS, workers))
    assert [result.error for result in done] == [None] * len(CELLS)
    assert sorted(result.cell_id for result in done) == IDS


class Silent(Executor):
    """Takes cells and never says a word of them."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_cells_of_which_nothing_is_heard_are_lost_after_a_while() -> None:
    with Workers(Silent, window=1) as workers:
        done = list(run_cells(CELLS[:1], workers, patience_s=0.0))
    assert "no cell was done for 0 s" in str(done[0].error)


def test_a_stop_cancels_what_waits_and_an_interrupt_leaves_it_to_the_end_of_its_pool() -> None:
    silent, stop = Silent(), threading.Event()
    stop.set()
    assert list(run_cells(CELLS, Workers(lambda: silent, window=2), stop)) == []
    assert [future.cancelled() for future in silent.futures] == [True, True]

    def interrupted() -> Any:
        yield from CELLS[:2]
        raise KeyboardInterrupt

    silent = Silent()
    with pytest.raises(KeyboardInterrupt):
        list(run_cells(interrupted(), Workers(lambda: silent, window=4)))
    # loky ends a pool by an error in each of its futures, which one that was cancelled does not take.
    assert [future.cancelled() for future in silent.futures] == [False, False]


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
    with InThisProcess() as executor:
        assert executor.submit(lambda: 3).result() == 3
        with pytest.raises(ZeroDivisionError):
            executor.submit(lambda: 1 / 0).result()


def test_threads_and_no_worker_at_all_are_refused() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(ConfigurationError, match="a pool of threads"):
        Workers.of(pool)
    with pytest.raises(ConfigurationError, match="workers must be 1 or more, not 0"):
        processes(0)
