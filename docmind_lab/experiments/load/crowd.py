"""Run many queries side by side in one virtual time: real runs of the whole stack, each begun at its scheduled instant.

    run_crowd(queries, workload, door, keep=lambda result: result.measured.run)

All of them meet the one provider behind the door, with its slots and its queue. What one query leaves behind when it is
given up goes on beside those that come later, and competes with them, until its own horizon.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from docmind_lab.alternatives.base import Alternative, AroundAlternative, Inputs, Outcome, Runnable
from docmind_lab.core.clock import Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.experiments.measurement.simulation import fixed_randomness, frozen_garbage
from docmind_lab.network.openai_parameters import plain_parameters
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.virtual_door import VirtualDoor
from docmind_lab.systems.base.workload_kind import Workload
from docmind_lab.virtual_time import VirtualClock

Rows = TypeVar("Rows")

# For what was cut at the last horizon to unwind, and for a thread that sleeps to be left.
_AFTER_HORIZON_S = 60.0
# A query leaves some 0.2 MB of cyclic garbage; with these few it never matters, and a look costs milliseconds.
_COLLECT_AFTER_ENDS = 25


@dataclass(frozen=True)
class Query:
    """A run, and when it is scheduled: seconds since the crowd began."""

    order: RunOrder
    scheduled_at_s: float


@dataclass(frozen=True)
class QueryResult:
    """A query, at its place in the crowd, and its measured run.

    started_at_s: when a caller took it, seconds since the begin of the crowd; its budget began then.
    """

    query: Query
    number: int
    started_at_s: float
    measured: MeasuredRun

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
    keep: Callable[[QueryResult], Rows],
    callers: int | None = None,
) -> tuple[Rows, ...]:
    """Run the queries and return what `keep` makes of each, in the order of the queries.

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
    return tuple(crowd.rows[number] for number in range(len(queries)))


class _Crowd(Generic[Rows]):
    """The queries under way on one clock. rows: what `keep` made of each that has ended, by its place."""

    def __init__(
        self, workload: Workload, door: VirtualDoor, keep: Callable[[QueryResult], Rows], callers: int | None
    ) -> None:
        self._workload, self._door, self._keep = workload, door, keep
        self._limit = callers
        self.rows: dict[int, Rows] = {}
        self._failures: list[Exception] = []

    def attend(self, queries: Sequence[Query], clock: Clock) -> None:
        """Start each query at its instant, whatever became of those before it, and wait until all have ended.

        Raises: what the first query to fail raised; no further query begins then.
        """
        callers = None if self._limit is None else threading.Semaphore(self._limit)
        began_at = clock.now()
        threads: list[threading.Thread] = []
        for number, query in enumerate(queries):
            clock.sleep(max(0.0, began_at + query.scheduled_at_s - clock.now()))
            if self._failures:
                break
            thread = threading.Thread(
                target=self._run, args=(number, query, clock, began_at, callers), name=f"query-{number}", daemon=True
            )
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _run(
        self, number: int, query: Query, clock: Clock, began_at: float, callers: threading.Semaphore | None
    ) -> None:
        try:
            order = query.order
            with contextlib.ExitStack() as until_answered:
                if callers is not None:
                    callers.acquire()
                    until_answered.callback(callers.release)
                    freeing = _CallerFreeing(order.alternative, until_answered.close)
                    order = dataclasses.replace(order, alternative=cast(Alternative, freeing))
                measured = measure(order, self._workload, self._door, clock)
            self.rows[number] = self._keep(QueryResult(query, number, measured.started_at_s - began_at, measured))
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for all
            self._failures.append(error)
        # At the ends of queries, whose order is the same in every repeat, so that garbage goes at the same instants.
        if (len(self.rows) + len(self._failures)) % _COLLECT_AFTER_ENDS == 0:
            gc.collect()


@dataclass(frozen=True)
class _CallerFreeing(AroundAlternative):
    """An alternative that frees its caller as soon as it has returned."""

    free: Callable[[], None]

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        try:
            return self.alternative.run(runnable, inputs, deadline, recorder)
        finally:
            self.free()
