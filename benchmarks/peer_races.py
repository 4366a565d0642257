"""Every order in which an answer, a timeout, a cancel, a sign of life and a second answer can reach one call.

    race(schedule=7)                   # RaceRun(order=('timeout', 'answer', …), outcome='timed_out', retriggers=1, …)
    explored(range(10_000))            # a frame, one row per schedule

All five come at one instant, each from a thread of its own, beside the answer of a second call of the same step. A
virtual clock with a seed draws which thread goes on whenever several can, also between the steps of one of them: each
acquisition of a lock is a place to be overtaken. So a claim that looked first and removed later would be found out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import pandas as pd

from docmind_lab.systems.peers.correlation import CorrelationEntry, PeerResult, PendingCalls
from docmind_lab.systems.peers.correlator import Correlator, TooLate
from docmind_lab.virtual_time import VirtualClock

NEWS = ("answer", "timeout", "cancel", "sign_of_life", "duplicate")
"""What races. cancel: the parent is cancelled. duplicate: the same answer once more."""

_HORIZON_S = 10.0


@dataclass(frozen=True)
class RaceRun:
    """One schedule.

    order: the news as they set out. outcomes: everything that was decided of the call; one, if all is well. retriggers:
    how often the parent went on; once, unless it was cancelled first. was_cancelled: whether the parent was cancelled
    before its step was complete. too_late: answers that were ignored. extended: whether a sign of life counted.
    left: calls still pending afterwards.
    """

    schedule: int
    order: tuple[str, ...]
    outcomes: tuple[str, ...]
    retriggers: int
    was_cancelled: bool
    too_late: int
    extended: bool
    left: int


class _Race:
    def __init__(self, store: PendingCalls, news: tuple[str, ...]) -> None:
        self.correlator = Correlator(store)
        self.order: list[str] = []
        self.outcomes: list[str] = []
        self.results: list[tuple[PeerResult, ...]] = []
        self.late: list[TooLate] = []
        self.extended = False
        self.cancelled: list[CorrelationEntry] = []
        self._entry, self._other = _entry("raced", 1), _entry("other", 2)
        self._news = news

    def run(self) -> None:
        self.correlator.begin([self._entry, self._other], self.results.append)
        runners = [threading.Thread(target=self._one, args=(name,), name=name) for name in (*self._news, "other")]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()

    def _one(self, name: str) -> None:
        if name in NEWS:
            self.order.append(name)
        happens: dict[str, Callable[[], None]] = {
            "answer": self._answer,
            "duplicate": self._answer,
            "timeout": self._timeout,
            "cancel": self._cancel,
            "sign_of_life": self._sign_of_life,
            "other": self._other_answer,
        }
        happens[name]()

    def _answer(self) -> None:
        late = self.correlator.answered(self._entry, {"ids": []})
        if late is None:
            self.outcomes.append("completed")
        else:
            self.late.append(late)

    def _timeout(self) -> None:
        claimed = self.correlator.timed_out(self._entry)
        if claimed is not None:
            self.outcomes.append("timed_out")
            result = PeerResult(claimed.function_call_id, claimed.peer_agent_name, "timed_out", error="its timeout")
            self.correlator.deliver(result, claimed)

    def _cancel(self) -> None:
        self.cancelled = self.correlator.parent_cancelled([self._entry, self._other])
        self.outcomes += ["cancelled" for entry in self.cancelled if entry.sub_task_id == self._entry.sub_task_id]

    def _sign_of_life(self) -> None:
        self.extended = self.correlator.sign_of_life(self._entry, 0)

    def _other_answer(self) -> None:
        self.correlator.answered(self._other, {"ids": []})


def _entry(name: str, number: int) -> CorrelationEntry:
    return CorrelationEntry(
        sub_task_id=f"race/{name}",
        function_call_id=f"call_{number}",
        peer_agent_name="reader_1",
        logical_task_id="race",
        invocation_id="race/0",
        timeout_s=1.0,
    )


def race(schedule: int, news: tuple[str, ...] = NEWS, store: Callable[[], PendingCalls] = PendingCalls) -> RaceRun:
    """What became of the call under one schedule. store: makes the store that is put to the test."""
    raced: list[_Race] = []

    def run() -> None:
        # Made inside, so that its locks are places to lose the baton.
        raced.append(_Race(store(), news))
        raced[0].run()

    VirtualClock(seed=schedule, horizon_s=_HORIZON_S).run(run)
    (found,) = raced
    left = len(found.correlator.store.pending())
    return RaceRun(
        schedule=schedule,
        order=tuple(found.order),
        outcomes=tuple(found.outcomes),
        retriggers=len(found.results),
        was_cancelled="cancel" in news and not found.results,
        too_late=len(found.late),
        extended=found.extended,
        left=left,
    )


def explored(
    schedules: Iterable[int], news: tuple[str, ...] = NEWS, store: Callable[[], PendingCalls] = PendingCalls
) -> pd.DataFrame:
    """One row per schedule, columns as the fields of `RaceRun`; order and outcomes as words joined by a blank."""
    rows = [asdict(race(schedule, news, store)) for schedule in schedules]
    frame = pd.DataFrame(rows)
    for column in ("order", "outcomes"):
        frame[column] = [" ".join(words) for words in frame[column]]
    return frame
