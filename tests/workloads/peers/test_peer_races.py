"""Whatever the order of news, one outcome; and the explorer finds a store that is not atomic."""

from __future__ import annotations

import math
from itertools import permutations

import pandas as pd
import pytest

from benchmarks.peer_races import NEWS, explored
from docmind_lab.systems.peers.correlation import CorrelationEntry, PendingCalls


def assert_each_was_decided_once(found: pd.DataFrame) -> None:
    assert set(found["outcomes"]) <= {"completed", "timed_out", "cancelled"}
    # The parent goes on once, unless it was cancelled before its step was complete; then never.
    assert (found["retriggers"] == (~found["was_cancelled"]).astype(int)).all()
    assert (found["left"] == 0).all()
    # Two answers came: those that did not decide the call were ignored, and counted.
    assert (found["too_late"] == 2 - (found["outcomes"] == "completed")).all()


def test_every_schedule_ends_with_one_outcome() -> None:
    found = explored(range(120))
    assert_each_was_decided_once(found)
    assert set(found["outcomes"]) == {"completed", "timed_out", "cancelled"}
    assert found["extended"].nunique() == 2


def test_the_same_schedule_has_the_same_course() -> None:
    assert explored(range(5)).equals(explored(range(5)))


class _LooksFirst(PendingCalls):
    """A store that looks, lets the lock go, and removes: what a claim must not be."""

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        with self._lock:
            entry = self._entries.get(sub_task_id)
        with self._lock:
            self._entries.pop(sub_task_id, None)
        return entry


def test_the_explorer_finds_a_claim_that_is_not_atomic() -> None:
    found = explored(range(60), store=_LooksFirst)
    assert found["outcomes"].str.contains(" ").any()


@pytest.mark.full
def test_ten_thousand_schedules_and_every_order_of_the_news_end_with_one_outcome() -> None:
    found = explored(range(10_000))
    assert_each_was_decided_once(found)
    assert found["order"].nunique() == math.factorial(len(NEWS)) == len(list(permutations(NEWS)))
