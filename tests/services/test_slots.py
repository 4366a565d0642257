"""The queue of a model server: order, slots, instants; and no slot is ever lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.slots import SlotQueue, Turn


def test_one_that_was_received_before_a_slot_became_free_starts_when_it_did():
    queue = SlotQueue[str](1)
    queue.arrive("a", 0.0)
    queue.leave("a", 2.0)
    # Received while "a" was served; its plan was made, and it came to the queue, only afterwards.
    assert queue.arrive("b", 1.9) == (Turn("b", 2.0),)


def test_a_slot_that_has_been_free_for_longer_is_taken_first():
    queue = SlotQueue[str](2)
    for name in "ab":
        queue.arrive(name, 0.0)
    queue.leave("a", 3.0)
    queue.leave("b", 2.0)
    assert queue.arrive("c", 1.0) == (Turn("c", 2.0),)
    assert queue.arrive("d", 1.0) == (Turn("d", 3.0),)


@pytest.mark.parametrize("slots", [0, -1])
def test_a_server_without_slots_is_refused(slots):
    with pytest.raises(ConfigurationError, match="slots must be at least 1"):
        SlotQueue(slots)


# Each step: whether one comes or one goes, after how long, and which one goes.
steps = st.lists(st.tuples(st.booleans(), st.floats(0, 3), st.integers(0, 50)), max_size=60)


@given(st.none() | st.integers(1, 4), steps)
def test_whoever_comes_and_goes_no_slot_is_lost_nor_used_twice_nor_idle_while_somebody_waits(slots, history):
    queue, now = SlotQueue[int](slots), 0.0
    present: list[int] = []
    arrived: dict[int, float] = {}
    started: dict[int, float] = {}
    ended: dict[int, float] = {}
    start_order: list[int] = []

    def note(turns: tuple[Turn[int], ...]) -> None:
        for turn in turns:
            started[turn.request] = turn.starts_at
            start_order.append(turn.request)

    for comes, after_s, which in history:
        now += after_s
        if comes or not present:
            request = len(arrived)
            arrived[request] = now
            present.append(request)
            note(queue.arrive(request, now))
        else:
            request = present.pop(which % len(present))
            ended[request] = now
            note(queue.leave(request, now))
        served = {request for request in present if request in started}
        assert queue.served == served
        assert queue.waiting == tuple(request for request in present if request not in started)
        assert slots is None or len(served) <= slots
        assert not queue.waiting or len(served) == slots

    assert start_order == sorted(start_order), "first come, first served"
    assert all(arrived[request] <= at for request, at in started.items())
    if slots is not None:
        for at in started.values():
            under_way = [r for r, begun in started.items() if begun <= at < ended.get(r, now + 1)]
            assert len(under_way) <= slots

    # Everybody goes home: all slots are free again.
    for request in present:
        now += 1.0
        note(queue.leave(request, now))
    assert (queue.served, queue.waiting) == (frozenset(), ())
    fresh = [len(arrived) + number for number in range(slots or 5)]
    assert [turns for request in fresh for turns in queue.arrive(request, now)] == [Turn(r, now) for r in fresh]
