"""What a replay needs of a recording: how long each call took, and what others of its role took.

A call's wait is what its client computed before it, plus what passed until it was over. Virtual time leaves out what
Python computes; played as a part of the wait, it stays where it was in the run.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docmind_lab.recordings.recording import RecordedCall, RecordedRun


# What is ready exactly at a deadline is late; sums of waits round to less than this.
_JUST_IN_TIME_S = 1e-6


REPLAYED_KINDS = ("llm", "retrieval")
"""Kinds of calls that services answer; tools of a user's graph run again in a replay."""


@dataclass(frozen=True)
class Timing:
    """How long one recorded call took, seconds since its client was free to make it.

    first_byte_s: until the first byte of the response; wait_s without one. wait_s: until it was over.
    """

    first_byte_s: float
    wait_s: float


@dataclass(frozen=True)
class Waits:
    """The waits of calls that came to an end by themselves, sorted, seconds: an empirical distribution."""

    values_s: tuple[float, ...]

    def at(self, level: float) -> float:
        """The quantile at a level in [0, 1), linear between the observations, none beyond the largest."""
        place = level * (len(self.values_s) - 1)
        low = int(place)
        high = min(low + 1, len(self.values_s) - 1)
        return self.values_s[low] + (place - low) * (self.values_s[high] - self.values_s[low])

    def beyond(self, passed_s: float, level: float) -> float:
        """A wait that is longer than what has passed: drawn from those that were.

        Where none was, the call goes on as if begun anew: no longer wait than any that was seen is made up, and none
        that ends before it was cut.
        """
        longer = Waits(self.values_s[bisect.bisect_right(self.values_s, passed_s) :])
        return longer.at(level) if longer.values_s else passed_s + self.at(level)


@dataclass(frozen=True)
class Timings:
    """of_call: by identity of the run and key of the call. by_role, by_kind: waits of the calls that ended by
    themselves.
    """

    by_role: Mapping[tuple[str, str], Waits]
    by_kind: Mapping[str, Waits]
    of_call: Mapping[tuple[tuple[str, str, int, str], tuple[str, int]], Timing] = field(repr=False)

    @classmethod
    def of(cls, runs: Iterable[RecordedRun]) -> Timings:
        """The timings of recorded runs."""
        of_call = {(run.key, call.key): timing for run in runs for call, timing in timings_of_run(run)}
        roles: dict[tuple[str, str], list[float]] = {}
        for run in runs:
            for call in run.calls:
                if call.end == "ok":
                    roles.setdefault((call.kind, call.role), []).append(of_call[run.key, call.key].wait_s)
        kinds: dict[str, list[float]] = {}
        for (kind, _), values_s in roles.items():
            kinds.setdefault(kind, []).extend(values_s)
        return cls(
            by_role={name: Waits(tuple(sorted(values_s))) for name, values_s in roles.items()},
            by_kind={name: Waits(tuple(sorted(values_s))) for name, values_s in kinds.items()},
            of_call=of_call,
        )

    def waits(self, kind: str, role: str) -> Waits | None:
        """What calls of the role took, else calls of the kind; None if none of them ended by itself."""
        return self.by_role.get((kind, role)) or self.by_kind.get(kind)


def timings_of_run(run: RecordedRun) -> list[tuple[RecordedCall, Timing]]:
    """Each call of a run with its timing, in the order of their starts.

    What was computed before a call is what passed since the latest end of another, or since the run's start; agents of
    one role that worked side by side did not wait for each other's calls. What follows an attempt that failed waited
    for its client's backoff, which a replay's client does again. What passed between the last end and the return counts
    with the last call.
    """
    calls = sorted(run.calls, key=lambda call: (call.started_at_s, call.key))
    failed = {(call.call_id, call.attempt + 1) for call in calls if call.end != "ok"}
    last = _last_before_return(calls, run.returned_at_s)
    timings = []
    for call in calls:
        computed_s = 0.0 if call.key in failed else _computed_s(call, calls)
        over_at_s = _returned_at_s(run, call) if call is last else call.ended_at_s
        timings.append((call, _timing(call, computed_s, over_at_s)))
    return timings


def _returned_at_s(run: RecordedRun, last: RecordedCall) -> float:
    """When the last call is over, with what its client computed until the return.

    An answer that came in time and was handed on after the deadline would be cut in a replay, if the deadline goes with
    the calls: there it comes just in time.
    """
    assert run.returned_at_s is not None, "a run has a last call because it returned"
    deadline_s = run.decision_timeout_s
    if run.deadline_propagation and last.ended_at_s < deadline_s <= run.returned_at_s:
        return max(last.ended_at_s, deadline_s - _JUST_IN_TIME_S)
    return run.returned_at_s


def _computed_s(call: RecordedCall, calls: Sequence[RecordedCall]) -> float:
    """What was computed since the client had all that the call waited for."""
    before = [other for other in calls if other.ended_at_s <= call.started_at_s and not _side_by_side(call, other)]
    latest = max(before, key=lambda other: other.ended_at_s, default=None)
    if latest is None:
        return call.started_at_s
    computed_s = call.started_at_s - latest.ended_at_s
    # No service answers a tool, so none plays what was computed before it: the next call does.
    if latest.kind not in REPLAYED_KINDS and latest.started_at_s < call.started_at_s:
        computed_s += _computed_s(latest, calls)
    return computed_s


def _side_by_side(call: RecordedCall, other: RecordedCall) -> bool:
    """Whether two calls are of agents of one role in one fan-out. A step is "handoff.fan-out.ordinal"."""
    ours, theirs = call.step.split("."), other.step.split(".")
    is_fan_out = len(ours) == len(theirs) == 3 and ours[0] == theirs[0] and ours[1] != theirs[1]
    return is_fan_out and call.role == other.role


def _timing(call: RecordedCall, computed_s: float, over_at_s: float) -> Timing:
    first_at_s = over_at_s if call.first_byte_at_s is None else call.first_byte_at_s
    first_s = computed_s + first_at_s - call.started_at_s
    return Timing(first_byte_s=first_s, wait_s=max(first_s, computed_s + over_at_s - call.started_at_s))


def _last_before_return(calls: Sequence[RecordedCall], returned_at_s: float | None) -> RecordedCall | None:
    """The call whose end let the run return; None if it was no call, or one was still open then."""
    if returned_at_s is None or any(call.started_at_s < returned_at_s < call.ended_at_s for call in calls):
        return None
    before = [call for call in calls if call.ended_at_s <= returned_at_s]
    last = max(before, key=lambda call: call.ended_at_s, default=None)
    return last if last is not None and last.end == "ok" else None
