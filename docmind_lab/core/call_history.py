"""What a session has shown so far: how long calls took, which were retried or failed, which queries were in time.

    history = CallHistory()
    with history_scope(history):                 # runs inside it learn from each other
        ...
    history.durations("synthesis").quantile(0.95)

A call that was cut had lasted some seconds and was not over: its duration is censored. Left out, the long calls would
be missing from every quantile, and a timeout that learns from the calls it cuts would shrink until it cuts nearly all.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

_WINDOW: Final = 100
# Of earlier queries, the nine nearest count of those that began beside at most one more; five must be known.
_NEAR, _MOST_NEAR, _FEWEST_NEAR = 1, 9, 5
# Shares of ends add up to a quantile only within the last digits.
_SAME_SHARE: Final = 1e-9


class Durations:
    """Durations of the last calls of one role.

    Args:
        window: How many calls are remembered.
    """

    def __init__(self, window: int = _WINDOW) -> None:
        self._last: deque[tuple[float, bool]] = deque(maxlen=window)

    def __len__(self) -> int:
        return len(self._last)

    def add(self, seconds: float, *, was_cut: bool) -> None:
        """Remember a call.

        Args:
            seconds: How long it lasted.
            was_cut: Whether it was not over then.
        """
        self._last.append((seconds, was_cut))

    def quantile(self, share: float, *, forgets_cuts: bool = False) -> float:
        """Return the duration within which this share of the calls end, by Kaplan and Meier's estimate.

        Args:
            share: Between 0 and 1.
            forgets_cuts: Whether only calls that ended count. This is the mistake that makes a timeout collapse that
                learns from the calls that it cuts.

        Returns:
            Seconds; inf where too many were cut to say, or no call is known.
        """
        known = sorted(each for each in self._last if not (forgets_cuts and each[1]))
        going_on, at_risk = 1.0, len(known)
        # Of one instant, ends come before cuts.
        for seconds, was_cut in known:
            if not was_cut:
                going_on *= 1 - 1 / at_risk
                if 1 - going_on >= share - _SAME_SHARE:
                    return seconds
            at_risk -= 1
        return math.inf


class QueriesUnderWay:
    """How many queries are under way, and which of the last ones were in time, by how many there were beside them.

    Safe to use from threads.
    """

    def __init__(self) -> None:
        self.count = 0
        self._ended: deque[tuple[int, bool]] = deque(maxlen=_WINDOW)
        self._lock = threading.Lock()

    def likely_in_time(self) -> float | None:
        """Return the share in time of earlier queries that began beside about as many as are under way now.

        Where none began beside so many, those count that began beside the most: beside more, no more are in time.

        Returns:
            None where too few are known to say.
        """
        with self._lock:
            # Of equally near ones, the latest.
            known = [each for each in list(self._ended)[::-1] if each[0] <= self.count + _NEAR]
            known.sort(key=lambda each: abs(each[0] - self.count))
        near = [was_in_time for _, was_in_time in known[:_MOST_NEAR]]
        return sum(near) / len(near) if len(near) >= _FEWEST_NEAR else None

    def begin(self) -> int:
        """Count a query that begins, and return how many are under way beside it."""
        with self._lock:
            self.count += 1
            return self.count - 1

    def end(self, beside: int, *, was_in_time: bool) -> None:
        """Remember a query that has ended.

        Args:
            beside: How many were under way when it began.
            was_in_time: Whether it ended by itself before its deadline.
        """
        with self._lock:
            self.count -= 1
            self._ended.append((beside, was_in_time))


@dataclass(eq=False)
class CallHistory:
    """What the queries and the model calls of a session have shown. Safe to use from threads.

    Args:
        calls: Calls that were begun, retries not counted.
        retries: Attempts after the first.
        failures_in_a_row: Attempts that failed since the last one that did not.
        refused_until_s: No call is begun before this instant of the session's clock; −inf where none is refused.
        queries: Those under way, and which were in time.
    """

    calls: int = 0
    retries: int = 0
    failures_in_a_row: int = 0
    refused_until_s: float = -math.inf
    queries: QueriesUnderWay = field(default_factory=QueriesUnderWay, repr=False)
    _durations: dict[str, Durations] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def durations(self, role: str) -> Durations:
        """Return the durations of one role's calls."""
        with self._lock:
            return self._durations.setdefault(role, Durations())

    def note_call(self) -> None:
        """Count a call that begins."""
        with self._lock:
            self.calls += 1

    def note_attempt(self, role: str, seconds: float, *, was_cut: bool) -> None:
        """Remember how long an attempt lasted.

        Args:
            role: Who made the call.
            seconds: From its begin to its end, or to its cut.
            was_cut: Whether a timeout, or the winner of a hedge, ended it.
        """
        durations = self.durations(role)
        with self._lock:
            durations.add(seconds, was_cut=was_cut)

    def quantile(self, role: str, share: float, *, forgets_cuts: bool = False) -> float:
        """Return a quantile of one role's durations, as `Durations.quantile`."""
        durations = self.durations(role)
        with self._lock:
            return durations.quantile(share, forgets_cuts=forgets_cuts)

    def take_retry(self, share: float, at_least: int) -> bool:
        """Count a retry if the budget of retries has one left.

        Args:
            share: Retries allowed for each call.
            at_least: Retries allowed however few calls there were.

        Returns:
            Whether the attempt may be made.
        """
        with self._lock:
            if self.retries + 1 > max(at_least, share * self.calls):
                return False
            self.retries += 1
            return True

    def note_success(self) -> None:
        """Note that a server has answered."""
        with self._lock:
            self.failures_in_a_row, self.refused_until_s = 0, -math.inf

    def note_failure(self, most_in_a_row: int, refuse_until_s: float) -> bool:
        """Note that an attempt has failed.

        Args:
            most_in_a_row: With so many, calls are refused.
            refuse_until_s: Until when, on the session's clock.

        Returns:
            Whether calls are refused from now on.
        """
        with self._lock:
            self.failures_in_a_row += 1
            if self.failures_in_a_row < most_in_a_row:
                return False
            self.refused_until_s = refuse_until_s
            return True

    def take_trial(self, now_s: float, next_trial_s: float) -> bool:
        """Return whether a call may begin. After a time of refusals, one call may, as a trial.

        Args:
            now_s: This instant, on the session's clock.
            next_trial_s: When the next trial may begin, if this is one.
        """
        with self._lock:
            if now_s < self.refused_until_s:
                return False
            if self.refused_until_s > -math.inf:
                self.refused_until_s = next_trial_s
            return True


_history: ContextVar[CallHistory | None] = ContextVar("docmind_lab_call_history", default=None)


def current_history() -> CallHistory | None:
    """Return the history that the running code's calls belong to; None outside a run."""
    return _history.get()


class history_scope:  # noqa: N801 - used as the functions beside it are
    """Put a history in force during a block.

    Args:
        history: The history; where left out, that of a block around this one, else a new one.
    """

    __slots__ = ("_given", "_token")

    def __init__(self, history: CallHistory | None = None) -> None:
        self._given = history

    def __enter__(self) -> CallHistory:
        chosen = self._given or _history.get() or CallHistory()
        self._token = _history.set(chosen)
        return chosen

    def __exit__(self, *exc_info: object) -> None:
        _history.reset(self._token)
