"""The engine of a panel: computes the newest request in other processes, and reports its progress.

    engine = Engine(listener)
    engine.request(PanelChoice.of(None, 20))     # returns at once; an earlier request ends within one run
    engine.stop()
    engine.close()

A request is computed in a thread that is there only while it lasts, and gives cells of one run each to warm processes:
virtual time does not run in the process of the notebook, unless no other process finds the graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Generic, TypeVar

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, InThisProcess, Simulated, Workers, compute_cells, kept_warm, run_cell
from docmind_lab.experiments.comparison.cell_runner import stays_in_this_process
from docmind_lab.experiments.comparison.comparison import require_propagation, simulated
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import require_simulated
from docmind_lab.views.panels.panel_run import PanelRun
from docmind_lab.views.panels.panel_settings import PanelChoice

Item = TypeVar("Item")


class Newest(Generic[Item]):
    """Processes one item at a time, the newest next; items requested in between are never begun.

    do: called with the item in the worker's thread; it reports its own errors, since no caller waits for them.
    name: of the thread, which exists only while there is something to do.
    """

    def __init__(self, do: Callable[[Item], None], name: str) -> None:
        self._do, self._name = do, name
        self._change = threading.Condition()
        self._asked: list[Item] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, item: Item) -> bool:
        """Process this item next, instead of any that waits. Returns False, and drops it, once closed."""
        with self._change:
            if self._closed:
                return False
            self._asked = [item]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            return True

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is left to do; return True, or False after `timeout_s`."""
        limit_at = time.monotonic() + timeout_s
        with self._change:
            return self._change.wait_for(lambda: self._thread is None, max(0.0, limit_at - time.monotonic()))

    def close(self) -> None:
        """Drop the waiting item and accept no more; the thread ends after its current item."""
        with self._change:
            self._closed = True
            self._asked = []

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._asked:
                    self._thread = None
                    self._change.notify_all()
                    return
                item = self._asked.pop()
            try:
                self._do(item)
            except BaseException:
                # A defect, which the interpreter reports; whoever waits for us must not wait for ever.
                with self._change:
                    self._thread = None
                    self._change.notify_all()
                raise


Listener = Callable[[PanelRun], None]
"""Called in the engine's thread with each change of the newest request, and never with an older one."""


def warm_processes() -> Workers:
    """Return warm worker processes on every core with short queues, so that new runs wait for few outdated ones.

    Few runs, too, are not for the process of the notebook. The wait between two runs of a worker is a hundredth of a
    run.
    """
    workers = kept_warm()
    workers.window = max(1, workers.window // 2)
    return workers


class Engine:
    """Computes the newest request of one panel, and drops older ones.

    workers: a factory of the processes that compute the runs.
    """

    def __init__(
        self,
        listener: Listener,
        *,
        workers: Callable[[], Workers] = warm_processes,
        settings: Settings | None = None,
    ) -> None:
        self._listener = listener
        # Made here and kept: a pool that is kept warm belongs to the thread that asks for it, and this is the
        # notebook's own, whose comparisons use the same. Processes start with the first run.
        self._workers = workers()
        # For a graph that no other process finds.
        self._here = Workers(InThisProcess)
        self.settings = Settings() if settings is None else settings
        self._requests = Newest(self._serve, "docmind-panel-runs")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._number = 0

    @property
    def number(self) -> int:
        """The number of the newest request."""
        return self._number

    def request(self, choice: PanelChoice) -> int:
        """Compute these settings next and return the request's number; the run under way ends first."""
        with self._lock:
            self._number += 1
            self._stop.set()
            # A fresh one for each request: a stop that comes late finds the event of a sweep that is over.
            self._stop = threading.Event()
            self._requests.ask((self._number, choice, self._stop))
            return self._number

    def stop(self) -> None:
        """End the current request within one run, and keep the runs that are done; does nothing when idle."""
        self._stop.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until no request is being computed; return True, or False after `timeout_s`."""
        return self._requests.wait(timeout_s)

    def close(self) -> None:
        """Stop, and accept no further request; the thread ends within one run."""
        self._requests.close()
        self._stop.set()

    def _serve(self, request: tuple[int, PanelChoice, threading.Event]) -> None:
        number, choice, stop = request
        sweep = PanelRun(number, choice, self.settings)
        try:
            for measured, total, starting in self._runs_so_far(sweep, stop):
                sweep = dataclasses.replace(sweep, measured=measured, total=total, starting=starting)
                if number == self._number:
                    self._listener(sweep)
            ended = dataclasses.replace(sweep, state="stopped" if len(sweep.measured) < sweep.total else "done")
        except Exception as error:  # noqa: BLE001 - nobody waits for the thread: the panel says what went wrong
            ended = dataclasses.replace(sweep, state="failed", error=error)
        if number == self._number:
            self._listener(ended)

    def _runs_so_far(
        self, sweep: PanelRun, stop: threading.Event
    ) -> Iterator[tuple[tuple[MeasuredRun, ...], int, str]]:
        """Yield the runs that are done, more each time, how many there will be, and what has to start before."""
        comparison = sweep.comparison
        require_propagation(comparison.alternatives, self.settings)
        settings = self.settings.replaced(agents={"enable_router_injection": comparison.router_injection})
        require_simulated(settings)
        workers = self._here if stays_in_this_process(comparison) else self._workers
        total, measured = comparison.total_runs, tuple[MeasuredRun, ...]()
        yield measured, total, "worker processes start" if workers.is_cold else ""
        orders = _question_by_question(comparison.orders())
        with contextlib.closing(self._compute(orders, simulated(comparison, settings), workers, stop)) as upcoming:
            # Looked at before a run too: a request that was outdated at once costs none.
            while not stop.is_set() and (run := next(upcoming, None)) is not None:
                measured = (*measured, run)
                yield measured, total, ""

    def _compute(
        self, orders: list[RunOrder], system: Simulated, workers: Workers, stop: threading.Event
    ) -> Generator[MeasuredRun]:
        """Yield the runs as they are done. Raises: the error of a run that failed twice."""
        cells = [Cell(order.facts.run_id, (order,), system) for order in orders]
        # Not as a context: one that is left early ends its processes, and the next request would have to start them.
        for result in compute_cells(cells, run_cell, workers, stop):
            if result.error is not None:
                raise result.error
            yield from result.measured


def _question_by_question(orders: Iterable[RunOrder]) -> list[RunOrder]:
    """Return the orders sorted by question.

    A figure then compares like with like from its first runs on, and the first question is the one that is in front.
    """
    # The id of a run ends with its repeat; seeds have no order.
    return sorted(orders, key=lambda order: (int(order.facts.run_id.rpartition("-")[2]), order.facts.run_id))
