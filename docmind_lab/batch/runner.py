"""Cells over workers: results as they come, stalled workers replaced, a stop heard between cells."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

from docmind_lab.batch.cells import Cell, CellResult
from docmind_lab.batch.worker import run_cell
from docmind_lab.batch.workers import Workers
from docmind_lab.errors import SimulationError

# A worker may be killed (out of memory, by a person); a cell that ends its worker again and again is the reason.
_MOST_TRIES = 3
# A finite wait, so that Ctrl-C and a stop are noticed at once on every platform.
_LOOK_S = 0.2


def run_cells(cells: Sequence[Cell], workers: Workers, stop: threading.Event | None = None) -> Iterator[CellResult]:
    """The cells' results, in the order they are done.

    A cell whose worker died is computed again, up to three times; one in which a run stalled comes back with what it
    had, `stalled` saying why, and its worker is replaced. stop: set by another thread, no further cell is begun and
    those under way are given up.

    Raises: SimulationError for a cell that ends its worker each time; what a run raises, which is a defect.
    """
    waiting = list(reversed(cells))
    tries = {cell.id: 0 for cell in cells}
    under_way: dict[Future[CellResult], Cell] = {}
    while waiting or under_way:
        while waiting and len(under_way) < workers.window:
            cell = waiting.pop()
            tries[cell.id] += 1
            under_way[workers.submit(run_cell, cell)] = cell
        done, _ = wait(under_way, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
        if stop is not None and stop.is_set():
            return
        must_replace = False
        for future in done:
            cell = under_way.pop(future)
            try:
                result = future.result()
            except BrokenExecutor as error:
                if tries[cell.id] >= _MOST_TRIES:
                    raise SimulationError(f"cell {cell.id} ended its worker {_MOST_TRIES} times") from error
                waiting.append(cell)
                must_replace = True
                continue
            must_replace = must_replace or bool(result.stalled)
            yield result
        if must_replace:
            # What the others had under way goes with the pool, and is not their fault.
            for cell in under_way.values():
                tries[cell.id] -= 1
                waiting.append(cell)
            under_way.clear()
            workers.replace()
