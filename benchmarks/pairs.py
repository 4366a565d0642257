"""Two ways to do the same work, timed in turn: what is compared is each pair, so a busy machine slows both alike."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Work = Callable[[], Any]
"""Does the work once and returns what was done, for comparison."""


class DifferentWork(AssertionError):
    """The two arms did not do the same, so their times say nothing about each other."""


@contextlib.contextmanager
def built_for_good() -> Iterator[None]:
    """Keep the collector from looking through what has been built: it is no garbage, and there are many collections."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def pair_ratios(pairs: Sequence[tuple[Work, Work]], repeats: int) -> list[float]:
    """Seconds of the first over seconds of the second, for each pair `repeats` times, after one untimed round.

    Who goes first changes with every pair. Raises: DifferentWork when the two do not return equal results.
    """
    for first, second in pairs:
        _timed_pair(first, second)
    ratios = []
    for repeat in range(repeats):
        for number, (first, second) in enumerate(pairs):
            if (repeat + number) % 2:
                second_s, first_s = _timed_pair(second, first)
            else:
                first_s, second_s = _timed_pair(first, second)
            ratios.append(first_s / second_s)
    return ratios


def _timed_pair(one: Work, other: Work) -> tuple[float, float]:
    one_s, done = _timed(one)
    other_s, also_done = _timed(other)
    if done != also_done:
        raise DifferentWork(f"the two arms did different work: {done!r} and {also_done!r}")
    return one_s, other_s


def _timed(work: Work) -> tuple[float, Any]:
    # A collection of one arm's garbage must not fall into the other's time.
    gc.collect()
    gc.disable()
    try:
        # CPU of all threads, not time that passes: other programs on the machine are no part of it.
        started_s = time.process_time()
        done = work()
        return time.process_time() - started_s, done
    finally:
        gc.enable()
