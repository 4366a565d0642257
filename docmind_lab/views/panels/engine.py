"""The engine of a panel: computes the newest request in other processes, and reports its progress.

    engine = Engine(listener)
    engine.request(PanelChoice.of(None, 20))     # returns at once; an earlier request ends within one run
    engine.stop()
    engine.close()

A request is computed in a thread that is there only while it lasts, and gives cells of one run each to warm processes:
virtual time does not run in the process of the notebook, unless no other process finds the graph. What has been
computed before is there at once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
import threading
import time
import zlib
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, InThisProcess, Simulated, Workers, compute_cells, kept_warm, run_cell
from docmind_lab.experiments.comparison.cell_runner import stays_in_this_process
from docmind_lab.experiments.comparison.comparison import require_propagation, simulated
from docmind_lab.experiments.comparison.wall import runs_on_the_wall_clock
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


# About 10 kB each once packed: every setting of an afternoon, in less memory than one worker has.
MOST_KNOWN_RUNS: Final = 4000
# The first level already takes a run to a tenth of its size, in well under a millisecond.
_LEVEL: Final = 1


class KnownRuns:
    """The runs of one engine by everything that determines them; beyond `MOST_KNOWN_RUNS` the oldest are dropped.

    A run in virtual time depends on nothing but its order and its system. The names of its study and its own are not
    among that: it comes back under those of the order that asks for it.
    """

    def __init__(self) -> None:
        self._packed: dict[Hashable, bytes] = {}

    def keep(self, order: RunOrder, system: Simulated, measured: MeasuredRun) -> None:
        """Store the run of an order."""
        self._packed[_key(order, system)] = zlib.compress(pickle.dumps(measured), _LEVEL)
        if len(self._packed) > MOST_KNOWN_RUNS:
            del self._packed[next(iter(self._packed))]

    def find(self, order: RunOrder, system: Simulated) -> MeasuredRun | None:
        """Return the stored run of an order, with the order's names; None if it is not stored."""
        packed = self._packed.get(_key(order, system))
        if packed is None:
            return None
        measured: MeasuredRun = pickle.loads(zlib.decompress(packed))
        return _with_names(measured, order.facts.study_id, order.facts.run_id)


def _key(order: RunOrder, system: Simulated) -> Hashable:
    nameless = dataclasses.replace(order, facts=dataclasses.replace(order.facts, study_id="", run_id=""))
    return nameless, system


def _with_names(measured: MeasuredRun, study_id: str, run_id: str) -> MeasuredRun:
    """Return the run with other study and run ids."""
    if (measured.run.study_id, measured.run.run_id) == (study_id, run_id):
        return measured
    names = {"study_id": study_id, "run_id": run_id}
    return dataclasses.replace(
        measured,
        run=dataclasses.replace(measured.run, **names),  # type: ignore[arg-type]
        calls=tuple(dataclasses.replace(call, **names) for call in measured.calls),  # type: ignore[arg-type]
        events=tuple(dataclasses.replace(event, **names) for event in measured.events),  # type: ignore[arg-type]
    )


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
        # Used by the thread of the requests alone.
        self._known = KnownRuns()
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
        total = comparison.total_runs
        measured: tuple[MeasuredRun, ...] = ()
        starting = "the services start"
        if comparison.clock == "wall":
            upcoming = runs_on_the_wall_clock(comparison, settings)
        else:
            require_simulated(settings)
            system = simulated(comparison, settings)
            orders = _question_by_question(comparison.orders())
            runs = [(order, self._known.find(order, system)) for order in orders]
            measured = tuple(run for _, run in runs if run is not None)
            workers = self._here if stays_in_this_process(comparison) else self._workers
            starting = "worker processes start" if workers.is_cold else ""
            upcoming = self._compute([order for order, run in runs if run is None], system, workers, stop)
        yield measured, total, starting
        with contextlib.closing(upcoming):
            # Looked at before a run too: a request that was outdated at once costs none.
            while not stop.is_set() and (run := next(upcoming, None)) is not None:
                measured = (*measured, run)
                yield measured, total, ""

    def _compute(
        self, orders: list[RunOrder], system: Simulated, workers: Workers, stop: threading.Event
    ) -> Generator[MeasuredRun]:
        """Yield the runs as they are done. Raises: the error of a run that failed twice."""
        order_of = {order.facts.run_id: order for order in orders}
        cells = [Cell(run_id, (order,), system) for run_id, order in order_of.items()]
        # Not as a context: one that is left early ends its processes, and the next request would have to start them.
        for result in compute_cells(cells, run_cell, workers, stop):
            if result.error is not None:
                raise result.error
            for run in result.measured:
                self._known.keep(order_of[result.cell_id], system, run)
                yield run


def _question_by_question(orders: Iterable[RunOrder]) -> list[RunOrder]:
    """Return the orders sorted by question.

    A figure then compares like with like from its first runs on, and the first question is the one that is in front.
    """
    # The id of a run ends with its repeat; seeds have no order.
    return sorted(orders, key=lambda order: (int(order.facts.run_id.rpartition("-")[2]), order.facts.run_id))
