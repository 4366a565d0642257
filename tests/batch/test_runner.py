"""Cells over workers: everything is computed once, a stalled or dead worker is replaced, a stop is heard."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

import pytest
from loky.process_executor import ShutdownExecutorError
from small_studies import Scripted

from docmind_lab.core.errors import SimulationError, SimulationStalled
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, CellResult, InThisProcess, Simulated, Workers, compute_cells, run_cell
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.services.server import ServiceOptions

SYSTEM = Simulated(Settings(), ServiceOptions())
CELLS = [Cell(f"{number:03}", (), SYSTEM) for number in range(5)]
IDS = [cell.id for cell in CELLS]
Act = Callable[[Cell], CellResult]


def computed(make: Callable[[], Executor], stop: threading.Event | None = None, **options: Any) -> list[CellResult]:
    """The results, in the order of the cells, each of which has one."""
    with Workers(make, window=2) as workers:
        done = sorted(compute_cells(CELLS, run_cell, workers, stop, **options), key=lambda result: result.cell_id)
    assert stop is not None or [result.cell_id for result in done] == IDS
    return done


def losing(error: Exception, times: int) -> tuple[Act, Counter[str]]:
    """What loses cell 001 so many times, by raising or by a stall, and how often each cell was tried."""
    tries: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        tries[cell.id] += 1
        if cell.id != "001" or tries[cell.id] > times:
            return CellResult(cell.id)
        if isinstance(error, SimulationStalled):
            return CellResult(cell.id, stalled=str(error))
        raise error

    return act, tries


@pytest.mark.parametrize("times", [1, 9])
@pytest.mark.parametrize(
    ("error", "kind", "reason", "pools"),
    [
        (BrokenExecutor("killed"), SimulationError, "cell 001 ended its worker: killed", 2),
        (SimulationStalled("r-7: a socket"), SimulationStalled, "run r-7: a socket", 2),
        (ZeroDivisionError("a defect"), ZeroDivisionError, "a defect", 1),
    ],
    ids=["no worker", "a stall", "a defect"],
)
def test_a_cell_that_is_lost_is_computed_once_more_and_then_comes_back_with_its_reason(
    error: Exception, kind: type[Exception], reason: str, pools: int, times: int
) -> None:
    act, tries = losing(error, times)
    made: list[Scripted] = []
    done = computed(lambda: made.append(Scripted(act)) or made[-1])  # type: ignore[func-returns-value]
    assert tries == {**dict.fromkeys(IDS, 1), "001": 2}, "no other cell is"
    lost = [result for result in done if result.error is not None]
    if times == 1:
        assert lost == []
        assert len(made) == pools, "a pool that broke or stalled is replaced"
    else:
        assert [(result.cell_id, type(result.error), str(result.error)) for result in lost] == [("001", kind, reason)]


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

    assert [result.cell_id for result in computed(Breaking) if result.error is not None] == ["001"]
    assert breaks == [2, 1], "with another cell, and then alone"


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
    assert [result.error for result in computed(lambda: next(pools))] == [None] * len(CELLS)


class Silent(Executor):
    """Takes cells and never says a word of them."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_cells_of_which_nothing_is_heard_are_lost_after_a_while() -> None:
    assert all("no cell was done for 0 s" in str(result.error) for result in computed(Silent, patience_s=0.0))


def test_a_stop_cancels_what_waits_and_an_interrupt_leaves_it_to_the_end_of_its_pool() -> None:
    silent, stop = Silent(), threading.Event()
    stop.set()
    assert list(compute_cells(CELLS, run_cell, Workers(lambda: silent, window=2), stop)) == []
    assert [future.cancelled() for future in silent.futures] == [True, True]

    def interrupted() -> Any:
        yield from CELLS[:2]
        raise KeyboardInterrupt

    silent = Silent()
    with pytest.raises(KeyboardInterrupt):
        list(compute_cells(interrupted(), run_cell, Workers(lambda: silent, window=4)))
    # loky ends a pool by an error in each of its futures, which one that was cancelled does not take.
    assert [future.cancelled() for future in silent.futures] == [False, False]


def test_after_a_stop_no_further_cell_is_begun_and_what_is_done_comes_back() -> None:
    stop = threading.Event()
    executor = Scripted(lambda cell: stop.set() or CellResult(cell.id))  # type: ignore[func-returns-value]
    done = computed(lambda: executor, stop)
    assert [result.cell_id for result in done] == sorted(executor.asked)
    assert len(executor.asked) <= 2, "those in the window at most"


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
