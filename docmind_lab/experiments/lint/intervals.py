"""Stretches of time as (from, to) pairs: what is in them, and what is left without others."""

from __future__ import annotations

from collections.abc import Iterable

TimeSpan = tuple[float, float]


def length_of(interval: TimeSpan) -> float:
    """Its seconds."""
    return interval[1] - interval[0]


def length_s(intervals: Iterable[TimeSpan]) -> float:
    """Seconds that the union of the intervals covers."""
    return sum(to - start for start, to in union(intervals))


def union(intervals: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The intervals in order, those that touch made one."""
    made: list[TimeSpan] = []
    for start, to in sorted(intervals):
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], to))
        elif to > start:
            made.append((start, to))
    return made


def within(intervals: Iterable[TimeSpan], start: float, to: float) -> list[TimeSpan]:
    """What of the intervals lies between two instants."""
    clipped = ((max(start, begun), min(to, ended)) for begun, ended in intervals)
    return [(begun, ended) for begun, ended in clipped if ended > begun]


def without(whole: TimeSpan, intervals: Iterable[TimeSpan]) -> list[TimeSpan]:
    """The parts of a stretch that none of the intervals covers; one that takes no time still divides it."""
    made, at = [], whole[0]
    for start, to in sorted(intervals):
        if start > whole[1] or to < whole[0]:
            continue
        if start > at:
            made.append((at, start))
        at = max(at, to)
    if whole[1] > at:
        made.append((at, whole[1]))
    return made
