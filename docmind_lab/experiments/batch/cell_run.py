"""Compute cells on workers: yield results as they come, retry lost cells once, check for a stop between cells."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from loky.process_executor import ShutdownExecutorError

from docmind_lab.core.errors import SimulationError, SimulationStalled
from docmind_lab.experiments.batch.cells import CellResult, Measured
from docmind_lab.experiments.batch.workers import Workers

# A finite wait, so that Ctrl-C and a stop are noticed at once on every platform.
_LOOK_S = 0.2
# A worker that runs Python code reports a stall by itself within seconds. One that was stopped from outside, or hangs
# in compiled code, says nothing; a cell takes seconds.
PATIENCE_S = 600.0


class AnyKindOfCell(Protocol):
    """What `compute_cells` needs to know of a cell, whatever its kind."""

    @property
    def id(self) -> str:
        """Id of the cell, unique in its study."""


AnyCell = TypeVar("AnyCell", bound=AnyKindOfCell)


def compute_cells(
    cells: Iterable[AnyCell],
    compute: Callable[[AnyCell, int], CellResult[Measured]],
    workers: Workers,
    stop: threading.Event | None = None,
    *,
    patience_s: float = PATIENCE_S,
) -> Generator[CellResult[Measured]]:
    """Compute cells on the workers and yield their results as they are done. cells: drawn one by one, as workers free.

    compute: (cell, attempt) → its result, in a worker, so it must be found by its name. A cell that is
    lost (its worker died or stalled, a run raised) is computed once more, and then comes back without runs and with the
    `error`. When a pool breaks, nobody knows who broke it: those who were in it go one at a time, so that blame falls
    on one. patience_s: with no cell done for so long, all that are under way count as lost. stop: set by another
    thread, no further cell is begun, what is done comes back, and what is under way is given up.
    """
    queue = _Queue(iter(cells), compute)
    done_at = time.monotonic()
    try:
        while queue.submit_cells(workers):
            done, _ = wait(queue.under_way, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            if done:
                done_at = time.monotonic()
            yield from queue.results_of(done)
            if stop is not None and stop.is_set():
                return
            if time.monotonic() - done_at > patience_s:
                yield from queue.give_up_all(f"no cell was done for {patience_s:g} s")
                done_at = time.monotonic()
            if queue.must_replace:
                workers.replace()
                queue.must_replace = False
    except KeyboardInterrupt:
        # An interrupt ends the pool, with all that is in it; loky's thread reports a defect of its own when
        # it finds a cell there that was cancelled a moment before.
        queue.under_way.clear()
        raise
    finally:
        for future in queue.under_way:
            future.cancel()


@dataclass
class _Queue(Generic[AnyCell, Measured]):
    """Queue of cells: not yet drawn, waiting for a retry, to be run alone because their pool broke, and under way."""

    fresh: Iterator[AnyCell]
    compute: Callable[[AnyCell, int], CellResult[Measured]]
    waiting: deque[AnyCell] = field(default_factory=deque)
    suspects: deque[AnyCell] = field(default_factory=deque)
    under_way: dict[Future[CellResult[Measured]], AnyCell] = field(default_factory=dict)
    lost_before: set[str] = field(default_factory=set)
    must_replace: bool = False

    def submit_cells(self, workers: Workers) -> bool:
        """Submit as many cells as there is room for. Returns whether any cell is under way."""
        if self.suspects:
            if not self.under_way:
                self._submit(self.suspects.popleft(), workers)
            return True
        while len(self.under_way) < workers.window:
            cell = self.waiting.popleft() if self.waiting else next(self.fresh, None)
            if cell is None:
                break
            self._submit(cell, workers)
        return bool(self.under_way)

    def _submit(self, cell: AnyCell, workers: Workers) -> None:
        try:
            future = workers.submit(self.compute, cell, 2 if cell.id in self.lost_before else 1)
        except (BrokenExecutor, ShutdownExecutorError) as error:
            # The pool broke between two cells: as if it had broken in this one.
            future = Future()
            future.set_exception(error)
        self.under_way[future] = cell

    def results_of(self, done: set[Future[CellResult[Measured]]]) -> Iterator[CellResult[Measured]]:
        """Yield the results of the futures that are done; queue lost cells again, or yield their errors."""
        if any(isinstance(_error_of(future), BrokenExecutor) for future in done):
            # The pool is gone, and with it those of which nothing has been heard yet.
            done = set(self.under_way)
        for future in done:
            cell = self.under_way.pop(future)
            error = _error_of(future)
            if error is None:
                result = future.result()
                if not result.stalled:
                    yield result
                    continue
                error = SimulationStalled(f"run {result.stalled}")
                self._requeue_others()
            if isinstance(error, BrokenExecutor):
                self.must_replace = True
                error = SimulationError(f"cell {cell.id} ended its worker: {error}")
                yield from self._retry_or_give_up(cell, error, self.suspects)
            elif isinstance(error, Exception):
                yield from self._retry_or_give_up(cell, error, self.waiting)
            else:
                raise error

    def give_up_all(self, reason: str) -> Iterator[CellResult[Measured]]:
        """Count every cell under way as lost."""
        cells = list(self.under_way.values())
        for future in self.under_way:
            future.cancel()
        self.under_way.clear()
        self.must_replace = True
        for cell in cells:
            yield from self._retry_or_give_up(cell, SimulationStalled(f"cell {cell.id}: {reason}"), self.suspects)

    def _requeue_others(self) -> None:
        """Queue the other cells under way again: they are lost with the replaced pool, but did not break it."""
        self.must_replace = True
        self.waiting.extendleft(cell for future, cell in self.under_way.items() if not future.done())
        self.under_way = {future: cell for future, cell in self.under_way.items() if future.done()}

    def _retry_or_give_up(
        self, cell: AnyCell, error: Exception, again: deque[AnyCell]
    ) -> Iterator[CellResult[Measured]]:
        if cell.id in self.lost_before:
            yield CellResult(cell.id, error=error)
        else:
            self.lost_before.add(cell.id)
            again.append(cell)


def _error_of(future: Future[Any]) -> BaseException | None:
    """Return the exception of a future, if any; a BrokenExecutor if the future is not done or was cancelled."""
    if not future.done() or future.cancelled():
        return BrokenExecutor("its pool broke")
    error = future.exception()
    # Another comparison was interrupted, which ends the processes that it shares with this one.
    return BrokenExecutor(str(error)) if isinstance(error, ShutdownExecutorError) else error
