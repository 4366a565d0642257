"""The timings that a replay takes from a recording: how long each call took, and other calls of its role.

A call's wait is what its client computed before it, plus what passed until it was over. Virtual time leaves out what
Python computes; played as a part of the wait, it stays where it was in the run.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from docmind_lab.tables.traces.importers.recordings import RecordedCall, RecordedRun, Recording, RunKey

_ROUNDING = 1e-9
# What is ready exactly at a deadline is late; sums of waits round to less than this.
_JUST_IN_TIME_S = 1e-6


REPLAYED_KINDS = ("llm", "retrieval")
"""Kinds of calls that services answer; tools of a user's graph run again in a replay."""


@dataclass(frozen=True)
class Timing:
    """Seconds since a client was free to make a recorded call, until its first byte, if any, and until it was over."""

    first_byte_s: float
    wait_s: float


# An observed wait stands for those that were cut before it. Where fewer than this share of the calls that go on are
# still observed, a few waits would have to stand for many: what is longer is not known.
_OBSERVED_SHARE = 1 / 3


@dataclass(frozen=True)
class Waits:
    """How long calls take to end by themselves: the Kaplan–Meier estimate of recorded calls.

    Calls that their client cut are longer than they were when cut (right-censored). What is longer than the recording
    could observe is not known, and is not made up: such a draw is infinite.

    E. L. Kaplan and P. Meier, *Nonparametric estimation from incomplete observations*, Journal of the American
    Statistical Association 53 (1958).

    values_s: observed waits, sorted. weights: for each the share of calls that it stands for; together 1, less where
    the rest was never observed.
    """

    values_s: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, observed_s: Sequence[float], cut_s: Sequence[float] = ()) -> Waits:
        """Estimate the distribution from waits of calls that ended by themselves, and of others until they were cut."""
        going_on = calls = len(observed_s) + len(cut_s)
        share = 1.0
        values_s: list[float] = []
        weights: list[float] = []
        # At one instant calls end before others are cut.
        for at_s, is_cut in sorted([(at_s, False) for at_s in observed_s] + [(at_s, True) for at_s in cut_s]):
            if not is_cut:
                if going_on < _OBSERVED_SHARE * share * calls:
                    break
                values_s.append(at_s)
                weights.append(share / going_on)
                share -= share / going_on
            going_on -= 1
        return cls(tuple(values_s), tuple(weights))

    @property
    def unknown_share(self) -> float:
        """Share of calls that lasted longer than the recording could observe."""
        # Shares of complete observations add up to 1 but for rounding.
        missing = 1.0 - math.fsum(self.weights)
        return missing if missing > _ROUNDING else 0.0

    def at(self, level: float) -> float:
        """Return the quantile at a level in [0, 1), interpolated between observations; infinite beyond them."""
        return self._at(level, 0)

    def beyond(self, passed_s: float, level: float) -> float:
        """Return a quantile of the waits longer than what has passed; infinite if no longer one was observed."""
        return self._at(level, bisect.bisect_right(self.values_s, passed_s))

    def _at(self, level: float, first: int) -> float:
        """Return the quantile among the observations from index `first` on, and the unobserved rest."""
        values_s, weights = self.values_s[first:], self.weights[first:]
        total = math.fsum(weights)
        if not values_s or level * (total + self.unknown_share) >= total:
            return math.inf
        # Each observation is in the middle of its weight, the first and the last at the ends.
        middles = list(itertools.accumulate((a + b for a, b in itertools.pairwise(weights)), initial=0.0))
        place = level * (total + self.unknown_share) / total * middles[-1]
        right = min(bisect.bisect_right(middles, place), len(values_s) - 1)
        if right == 0:
            return values_s[0]
        part = (place - middles[right - 1]) / (middles[right] - middles[right - 1])
        return min(values_s[right - 1] + part * (values_s[right] - values_s[right - 1]), values_s[right])


@dataclass(frozen=True)
class Timings:
    """How long the calls of a recording took: by kind and role, by kind, and each by its run's key and its own.

    has_cuts: whether any call was cut, so that runs may have gone on to calls that nobody saw.
    """

    by_role: Mapping[tuple[str, str], Waits]
    by_kind: Mapping[str, Waits]
    has_cuts: bool
    of_call: Mapping[tuple[RunKey, tuple[str, int]], Timing] = field(repr=False)

    def waits(self, kind: str, role: str) -> Waits | None:
        """Return how long calls of a role take, else calls of the kind; None if the recording has none.

        In a recording with calls that were cut, a role that was never seen may be what its runs did not come to:
        nothing is known of it, whatever other roles took.
        """
        waits = self.by_role.get((kind, role))
        if waits is not None:
            return waits
        return _UNKNOWN if self.has_cuts else self.by_kind.get(kind)


_UNKNOWN = Waits((), ())


@functools.lru_cache(maxsize=2)
def timings_of(recording: Recording) -> Timings:
    """Return how long the calls of a recording took, computed once for the latest recordings."""
    of_call: dict[tuple[RunKey, tuple[str, int]], Timing] = {}
    roles: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in recording.runs:
        for call, timing in timings_of_run(run):
            of_call[run.key, call.key] = timing
            if call.end != "error":
                ends = roles.setdefault((call.kind, call.role), {"ok": [], "cut": []})
                ends[call.end].append(timing.wait_s)
    by_kind: dict[str, dict[str, list[float]]] = {}
    for (kind, _), ends in roles.items():
        of_kind = by_kind.setdefault(kind, {"ok": [], "cut": []})
        for end, waits_s in ends.items():
            of_kind[end] += waits_s
    return Timings(
        by_role={name: Waits.of(ends["ok"], ends["cut"]) for name, ends in roles.items()},
        by_kind={name: Waits.of(ends["ok"], ends["cut"]) for name, ends in by_kind.items()},
        has_cuts=any(ends["cut"] for ends in roles.values()),
        of_call=of_call,
    )


def timings_of_run(run: RecordedRun) -> list[tuple[RecordedCall, Timing]]:
    """Return each call of a run with its timing, in the order of their starts.

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
    """Return when the last call is over, including what its client computed until the run returned.

    An answer that came in time and was handed on after the deadline would be cut in a replay, if the deadline goes with
    the calls: there it comes just in time.
    """
    assert run.returned_at_s is not None, "a run has a last call because it returned"
    deadline_s = run.decision_timeout_s
    if run.deadline_propagation and last.ended_at_s < deadline_s <= run.returned_at_s:
        return max(last.ended_at_s, deadline_s - _JUST_IN_TIME_S)
    return run.returned_at_s


def _computed_s(call: RecordedCall, calls: Sequence[RecordedCall]) -> float:
    """Return the seconds that the client computed after everything that the call waited for."""
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
    """Return the call whose end let the run return; None if it was not a call, or one was still open."""
    if returned_at_s is None or any(call.started_at_s < returned_at_s < call.ended_at_s for call in calls):
        return None
    before = [call for call in calls if call.ended_at_s <= returned_at_s]
    last = max(before, key=lambda call: call.ended_at_s, default=None)
    return last if last is not None and last.end == "ok" else None
