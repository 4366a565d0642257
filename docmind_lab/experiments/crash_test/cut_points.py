"""Cut points: the instants of an undisturbed run at which something begins or ends, and which of them are tried."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from docmind_lab.experiments.crash_test.observation import FIRST, Observation

BESIDE_S: Final = 1e-6
"""Virtual seconds before and after an instant at which it is tried too."""
_DIGITS = 9


@dataclass(frozen=True)
class CutPoint:
    """An instant at which a run can be cut.

    kinds: what begins or ends there, such as "request begins"; more than one where they coincide. side: "before", "at"
    or "after".
    """

    at_s: float
    kinds: tuple[str, ...]
    side: str


def cut_points(undisturbed: Observation) -> list[CutPoint]:
    """Return the cut points of an undisturbed run, in the order of time.

    Each instant is there three times: just before, at, and just after. The caller was told at the last of them.
    """
    told_at_s = math.inf if undisturbed.told_at_s is None else undisturbed.told_at_s
    at: dict[float, set[str]] = {}
    for mark in undisturbed.of(FIRST):
        if mark.at_s <= told_at_s:
            at.setdefault(round(mark.at_s, _DIGITS), set()).add(f"{mark.kind} {mark.edge}".rstrip())
    points: dict[float, CutPoint] = {}
    for instant, kinds in sorted(at.items()):
        for side, by_s in (("at", 0.0), ("before", -BESIDE_S), ("after", BESIDE_S)):
            at_s = round(instant + by_s, _DIGITS)
            if at_s > 0 and (side == "at" or at_s not in points):
                points[at_s] = CutPoint(at_s, tuple(sorted(kinds)), side)
    return [points[at_s] for at_s in sorted(points)]


def in_turn(points: Sequence[CutPoint], most: int | None) -> list[CutPoint]:
    """Return at most so many points, chosen so that each kind is tried before any kind is tried twice.

    most: how many may be tried; None for all.
    """
    if most is None or most >= len(points):
        return list(points)
    order = {"at": 0, "after": 1, "before": 2}
    queues: dict[str, list[CutPoint]] = {}
    for point in sorted(points, key=lambda point: (order[point.side], point.at_s)):
        for kind in point.kinds:
            queues.setdefault(kind, []).append(point)
    taken: dict[float, CutPoint] = {}
    while len(taken) < most and any(queues.values()):
        for queue in queues.values():
            while queue and queue[0].at_s in taken:
                queue.pop(0)
            if queue and len(taken) < most:
                point = queue.pop(0)
                taken[point.at_s] = point
    return [taken[at_s] for at_s in sorted(taken)]


def kinds_of(points: Iterable[CutPoint]) -> dict[str, int]:
    """Count the points of each kind."""
    return dict(sorted(Counter(kind for point in points for kind in point.kinds).items()))
