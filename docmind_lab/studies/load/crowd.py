"""Queries side by side: real runs of the whole stack, each from its scheduled instant on, in one virtual time.

    run_crowd(queries, workload, door, keep=lambda attended: attended.measured.run)

All of them meet the one provider behind the door, with its slots and its queue. What one query leaves behind when it is
given up goes on beside those that come later, and competes with them, until its own horizon.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from docmind_lab.alternatives.base import Alternative, Inputs, Outcome, Runnable
from docmind_lab.clocks.virtual import VirtualClock
from docmind_lab.deadlines import Deadline
from docmind_lab.measurement import MeasuredRun, RunOrder, Workload, measure
from docmind_lab.recorder import Recorder
from docmind_lab.services.slots import SlotQueue, Turn
from docmind_lab.services.virtual_door import VirtualDoor

Kept = TypeVar("Kept")

# For what was cut at the last horizon to unwind, and for a thread that sleeps to be left.
_AFTER_HORIZON_S = 60.0
# A query leaves some 0.2 MB of cyclic garbage; with these few it never matters, and a look costs milliseconds.
_COLLECT_AFTER_ENDS = 25


@dataclass(frozen=True)
class Query:
    """What to run, and when: seconds since the begin of the crowd's clock."""

    order: RunOrder
    scheduled_at_s: float


@dataclass(frozen=True)
class Attended:
    """A query and what came of it.

    number: its place in the crowd. started_at_s: when a caller took it, on the crowd's clock; its budget began then.
    """

    query: Query
    number: int
    started_at_s: float
    measured: MeasuredRun

    @property
    def waited_for_caller_s(self) -> float:
        """Seconds from the scheduled arrival until a caller took it."""
        # The sum of a wait and an instant may miss the instant that was aimed for by its last digit.
        return max(0.0, self.started_at_s - self.query.scheduled_at_s)


def run_crowd(
    queries: Sequence[Query],
    workload: Workload,
    door: VirtualDoor,
    *,
    keep: Callable[[Attended], Kept],
    callers: int | None = None,
) -> tuple[Kept, ...]:
    """What `keep` makes of each query, in the order of the queries.

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
        on_entry=[lambda _: _same_chances(queries[0].order.facts.seed), door.open],
    )
    clock.run(crowd.attend, queries, clock)
    return tuple(crowd.kept[number] for number in range(len(queries)))


@contextlib.contextmanager
def _same_chances(seed: int) -> Iterator[None]:
    """Draw from the same global generator in every repeat, and leave it to the crowd when garbage goes.

    As in `simulation`; but a crowd makes too much garbage to keep all of it. What is there already is left out of the
    crowd's collections, which would otherwise go through the whole imported stack each time.
    """
    state, collected = random.getstate(), gc.isenabled()
    random.seed(seed)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        random.setstate(state)
        if collected:
            gc.enable()


class _Crowd(Generic[Kept]):
    """The queries of one clock while they are under way."""

    def __init__(
        self, workload: Workload, door: VirtualDoor, keep: Callable[[Attended], Kept], callers: int | None
    ) -> None:
        self._workload, self._door, self._keep = workload, door, keep
        self._limit = callers
        self.kept: dict[int, Kept] = {}
        self._failures: list[Exception] = []

    def attend(self, queries: Sequence[Query], clock: VirtualClock) -> None:
        """Let each query begin at its instant, whatever became of those before; wait for all of them to end."""
        callers = None if self._limit is None else Callers(self._limit, clock)
        threads = []
        for number, query in enumerate(queries):
            clock.sleep(max(0.0, query.scheduled_at_s - clock.now()))
            thread = threading.Thread(target=self._one, args=(number, query, clock, callers), name=f"query-{number}")
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    def _one(self, number: int, query: Query, clock: VirtualClock, callers: Callers | None) -> None:
        try:
            order = query.order
            if callers is not None:
                callers.wait_for_one(number)
                order = dataclasses.replace(order, alternative=_freeing(order.alternative, callers, number))
            started_at_s = clock.now()
            try:
                measured = measure(order, self._workload, self._door, clock)
            finally:
                if callers is not None:
                    callers.free(number)
            self.kept[number] = self._keep(Attended(query, number, started_at_s, measured))
        except Exception as error:  # noqa: BLE001 - raised again by the thread that waits for all
            self._failures.append(error)
        # At the ends of queries, whose order is the same in every repeat, so that garbage goes at the same instants.
        if (len(self.kept) + len(self._failures)) % _COLLECT_AFTER_ENDS == 0:
            gc.collect()


class Callers:
    """So many callers, and who waits for one, first come first served. For the actors of one clock."""

    def __init__(self, count: int, clock: VirtualClock) -> None:
        self._queue: SlotQueue[int] = SlotQueue(count)
        self._clock = clock
        self._turns: dict[int, threading.Event] = {}

    def wait_for_one(self, number: int) -> None:
        """Wait until a caller takes this query."""
        turn = self._turns[number] = threading.Event()
        self._let_start(self._queue.arrive(number, self._clock.now()))
        turn.wait()

    def free(self, number: int) -> None:
        """The caller of this query takes the next one. A second time changes nothing."""
        self._let_start(self._queue.leave(number, self._clock.now()))

    def _let_start(self, turns: Iterable[Turn[int]]) -> None:
        for turn in turns:
            self._turns.pop(turn.request).set()


@dataclass(frozen=True)
class _Freeing:
    """An alternative whose caller is free as soon as it has returned."""

    inner: Alternative
    free: Callable[[], None]

    @property
    def propagates(self) -> bool:
        return self.inner.propagates

    @property
    def client_retries(self) -> bool:
        return self.inner.client_retries

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        try:
            return self.inner.run(runnable, inputs, deadline, recorder)
        finally:
            self.free()


def _freeing(alternative: Alternative, callers: Callers, number: int) -> Alternative:
    # A measurement asks for no name; what an alternative is called stands in the facts.
    return cast("Alternative", _Freeing(alternative, lambda: callers.free(number)))
