"""Run many queries side by side on one clock: real runs of the whole stack, each begun at its scheduled instant.

    run_crowd(queries, workload, door, keep=lambda attended: attended.measured.run)                 # in virtual time
    run_crowd_on_the_wall(queries, workload, log, keep=lambda attended: attended.measured.run)      # over sockets

All of them meet the one provider behind the door, or at the end of the sockets, with its slots and its queue. What one
query leaves behind when it is given up goes on beside those that come later, and competes with them, until its own
horizon.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from docmind_lab.alternatives.base import Alternative, Inputs, Outcome, Runnable
from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RequestLog, RunOrder, measure
from docmind_lab.experiments.measurement.simulation import fixed_randomness, frozen_garbage
from docmind_lab.network.openai_parameters import plain_parameters
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.slots import SlotQueue, Turn
from docmind_lab.services.virtual_door import VirtualDoor
from docmind_lab.systems.base.workload_kind import Workload
from docmind_lab.virtual_time import VirtualClock

Kept = TypeVar("Kept")

# For what was cut at the last horizon to unwind, and for a thread that sleeps to be left.
_AFTER_HORIZON_S = 60.0
# A query leaves some 0.2 MB of cyclic garbage; with these few it never matters, and a look costs milliseconds.
_COLLECT_AFTER_ENDS = 25
# How often the main thread of a crowd on the wall clock looks whether all queries have ended. Waiting in bounded steps
# lets Ctrl-C through at once on every platform.
_LOOK_EVERY_S = 0.05
# How soon a failed query ends a crowd whose next query is far off.
_LONGEST_SLEEP_S = 0.5
# A client that retries may sleep for some seconds before it notices that the services are gone.
_UNWINDING_S = 10.0


@dataclass(frozen=True)
class Query:
    """A run, and when it is scheduled: seconds since the crowd began."""

    order: RunOrder
    scheduled_at_s: float


@dataclass(frozen=True)
class QueryResult:
    """A query, at its place in the crowd, and its measured run.

    started_at_s: when a caller took it, seconds since the begin of the crowd; its budget began then. late_s: how long
    after its scheduled arrival its thread began.
    """

    query: Query
    number: int
    started_at_s: float
    measured: MeasuredRun
    late_s: float = 0.0

    @property
    def waited_for_caller_s(self) -> float:
        """Seconds from the scheduled arrival until a caller took the query."""
        # The sum of a wait and an instant may miss the instant that was aimed for by its last digit.
        return max(0.0, self.started_at_s - self.query.scheduled_at_s)


def run_crowd(
    queries: Sequence[Query],
    workload: Workload,
    door: VirtualDoor,
    *,
    keep: Callable[[QueryResult], Kept],
    callers: int | None = None,
) -> tuple[Kept, ...]:
    """Run the queries in virtual time and return what `keep` makes of each, in the order of the queries.

    queries: in the order of their instants. workload: one whose clients reach the addresses of the door, and have
    connections for all that is under way. callers: queries that the system takes at once; the others wait for one, in
    order of arrival, and a caller is free again when it has its answer, whatever goes on behind it. None for no limit.
    keep: called as a query's observation ends; what it does not keep is gone, so that memory does not grow with the
    events of all queries.

    Each query is observed to its own horizon, and what is left of it is cut there, as in a run of its own.
    Raises: what `measure` raises, which is a defect; SimulationStalled, as `simulation.simulate` does.
    """
    horizon_s = max(query.order.facts.horizon_s for query in queries)
    # With callers, the last one may have to wait until all before it have come to their horizon.
    turns = 1 if callers is None else math.ceil(len(queries) / callers)
    crowd = _Crowd(workload, door, keep, callers)
    clock = VirtualClock(
        horizon_s=queries[-1].scheduled_at_s + turns * horizon_s + _AFTER_HORIZON_S,
        on_entry=[
            # Garbage is left to the crowd, which makes too much to keep all of it.
            lambda _: frozen_garbage(),
            lambda _: fixed_randomness(queries[0].order.facts.seed),
            lambda _: plain_parameters(),
            door.open,
        ],
    )
    clock.run(crowd.attend, queries, clock)
    return tuple(crowd.kept[number] for number in range(len(queries)))


def run_crowd_on_the_wall(
    queries: Sequence[Query],
    workload: Workload,
    log: RequestLog,
    *,
    keep: Callable[[QueryResult], Kept],
    end_services: Callable[[], None],
    callers: int | None = None,
) -> tuple[Kept, ...]:
    """Run the queries in real time, as `run_crowd` does in virtual time, at one model server whose log this is.

    Each query has a thread of its own, which begins at its scheduled instant whatever became of those before, and calls
    `keep`. As many are under way as arrive within a horizon: see `LoadDesign`, which bounds them. end_services: called
    when the crowd is cut short, so that what still waits for an answer fails at once.

    Raises: what `measure` raises, and no further query begins then; KeyboardInterrupt when the threads of the queries
    have ended, or after `_UNWINDING_S`.
    """
    crowd = _WallCrowd(workload, log, keep, callers)
    try:
        with frozen_garbage():
            crowd.begin(queries, WALL)
            while not crowd.failures and len(crowd.kept) < len(queries):
                time.sleep(_LOOK_EVERY_S)
    finally:
        crowd.is_over.set()
        if len(crowd.kept) < len(queries):
            end_services()
        limit_at = time.monotonic() + _UNWINDING_S
        while any(thread.is_alive() for thread in crowd.threads) and time.monotonic() < limit_at:
            time.sleep(_LOOK_EVERY_S)
    crowd.raise_first()
    return tuple(crowd.kept[number] for number in range(len(queries)))


class _Crowd(Generic[Kept]):
    """The queries under way on one clock."""

    def __init__(
        self, workload: Workload, log: RequestLog, keep: Callable[[QueryResult], Kept], callers: int | None
    ) -> None:
        self._workload, self._log, self._keep = workload, log, keep
        self._limit = callers
        self.kept: dict[int, Kept] = {}
        self.failures: list[Exception] = []
        self.threads: list[threading.Thread] = []
        self.is_over = threading.Event()

    def attend(self, queries: Sequence[Query], clock: Clock) -> None:
        """Start each query at its instant and wait until all have ended. Raises: what the first failed query raised."""
        self.begin(queries, clock)
        for thread in self.threads:
            thread.join()
        self.raise_first()

    def begin(self, queries: Sequence[Query], clock: Clock) -> None:
        """Start each query at its instant, whatever became of those before it, until one raises."""
        callers = None if self._limit is None else Callers(self._limit, clock)
        began_at = clock.now()
        for number, query in enumerate(queries):
            self._wait_until(began_at + query.scheduled_at_s, clock)
            if self.failures:
                break
            thread = threading.Thread(
                target=self._run, args=(number, query, clock, began_at, callers), name=f"query-{number}", daemon=True
            )
            thread.start()
            self.threads.append(thread)

    def raise_first(self) -> None:
        """Raise what the first query to fail raised, if any did."""
        if self.failures:
            raise self.failures[0]

    def _run(self, number: int, query: Query, clock: Clock, began_at: float, callers: Callers | None) -> None:
        late_s = max(0.0, clock.now() - began_at - query.scheduled_at_s)
        try:
            order = query.order
            if callers is not None:
                callers.wait_for_one(number)
                freeing = _CallerFreeing(order.alternative, functools.partial(callers.free, number))
                order = dataclasses.replace(order, alternative=cast(Alternative, freeing))
            try:
                if self.is_over.is_set():
                    return
                measured = measure(order, self._workload, self._log, clock)
            finally:
                if callers is not None:
                    callers.free(number)
            self.kept[number] = self._keep(
                QueryResult(query, number, measured.started_at_s - began_at, measured, late_s)
            )
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for all
            self.failures.append(error)
        self._collect_garbage()

    def _wait_until(self, at: float, clock: Clock) -> None:
        clock.sleep(max(0.0, at - clock.now()))

    def _collect_garbage(self) -> None:
        # At the ends of queries, whose order is the same in every repeat, so that garbage goes at the same instants.
        if (len(self.kept) + len(self.failures)) % _COLLECT_AFTER_ENDS == 0:
            gc.collect()


class _WallCrowd(_Crowd[Kept]):
    """A crowd in real time, which stops early when a query fails. Python collects its garbage as usual."""

    def _wait_until(self, at: float, clock: Clock) -> None:
        while not self.failures and (left_s := at - clock.now()) > 0:
            clock.sleep(min(left_s, _LONGEST_SLEEP_S))

    def _collect_garbage(self) -> None:
        """Do nothing: Python collects garbage by itself."""


class Callers:
    """A fixed number of callers, and a first-come-first-served queue of queries for them. Safe to use from threads."""

    def __init__(self, count: int, clock: Clock) -> None:
        self._queue: SlotQueue[int] = SlotQueue(count)
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[int, threading.Event] = {}

    def wait_for_one(self, number: int) -> None:
        """Wait until a caller takes this query."""
        turn = threading.Event()
        with self._lock:
            self._turns[number] = turn
            self._let_start(self._queue.arrive(number, self._clock.now()))
        turn.wait()

    def free(self, number: int) -> None:
        """Free the caller of this query for the next one. A second call changes nothing."""
        with self._lock:
            self._let_start(self._queue.leave(number, self._clock.now()))

    def _let_start(self, turns: Iterable[Turn[int]]) -> None:
        for turn in turns:
            self._turns.pop(turn.request).set()


@dataclass(frozen=True)
class _CallerFreeing:
    """An alternative that frees its caller as soon as it has returned; it has what a measurement asks of one."""

    inner: Alternative
    free: Callable[[], None]

    @property
    def propagates(self) -> bool:
        return self.inner.propagates

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        try:
            return self.inner.run(runnable, inputs, deadline, recorder)
        finally:
            self.free()
