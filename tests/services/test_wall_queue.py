"""Slots and their queue behind real sockets: who waits, for how long, and what a client that leaves changes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import QdrantClient
from service_doors import MODEL, NOTICED_S, QUESTION, SLOW, Crowd, always, new_run, openai_at, tags

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.faults import Fault
from docmind_lab.services.log import RequestRow
from docmind_lab.services.slots import SlotQueue, Turn

# 0.06 + 9 × 0.06 = 0.6 s for each answer, one at a time: far above what a shared core pauses for.
ONE_SLOT = replace(SLOW, first_token_s=always(0.06), inter_token_s=always(0.06), slots=1)


@pytest.fixture
def crowd_at(serve_here) -> Iterator[Callable[..., Crowd]]:
    crowds: list[Crowd] = []

    def start(**options: Any) -> Crowd:
        here = serve_here(**({"profile": ONE_SLOT} | options))
        with openai_at(here.addresses) as client:  # the first use of a client loads what no later one does
            client.models.list()
        crowds.append(Crowd(here))
        return crowds[-1]

    yield start
    for crowd in crowds:
        crowd.gone()


def started_at(row: RequestRow) -> float:
    return row.received_at + row.queue_wait_s


@pytest.mark.wall
def test_runs_with_slots_of_their_own_do_not_wait_for_each_other_and_calls_of_one_run_do(crowd_at):
    crowd = crowd_at(slots_of_run=True)
    other = Crowd(crowd.here)
    crowd.comes("a")
    other.comes("b")
    crowd.comes("c")
    rows, apart = crowd.rows(), other.rows()
    other.gone()
    assert (rows["a"].queue_wait_s, apart["b"].queue_wait_s) == (0.0, 0.0)
    assert rows["a"].ended_at <= started_at(rows["c"]) <= rows["a"].ended_at + NOTICED_S
    for run_id in (crowd.run_id, other.run_id):
        crowd.here.log.forget(run_id)
    assert crowd.here.door._queues.keys() == {""}, "nothing is kept of a run that is over"


# ---- what needs no slot


def test_refusals_and_searches_do_not_wait_for_a_slot(crowd_at):
    faults = (Fault("hang", "router"), Fault("rate_limit", "planner"), Fault("http_500", "validation"))
    crowd, run_id = crowd_at(faults=faults), new_run()
    crowd.comes("hangs")
    with openai_at(crowd.here.addresses, timeout=10) as client:
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model=MODEL, messages=[], extra_headers=tags(run_id))
        for role, error in (("planner", openai.RateLimitError), ("validation", openai.InternalServerError)):
            with pytest.raises(error):
                client.chat.completions.create(model=MODEL, messages=QUESTION, extra_headers=tags(run_id, role=role))
        assert client.models.list()
    with contextlib.closing(QdrantClient(url=crowd.here.addresses.qdrant_url, check_compatibility=False)) as store:
        store.create_collection("c", vectors_config={})
        assert store.scroll("c") == ([], None)
    rows = crowd.here.log.rows(run_id, wait_quiet_s=5)
    assert [(row.status, row.queue_wait_s) for row in rows] == [(400, 0.0), (429, 0.0), (500, 0.0)]
    assert crowd.rows(wait_quiet_s=0)["hangs"].outcome == "open"
    crowd.here.log.forget(crowd.run_id)


# ---- the queue alone


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
