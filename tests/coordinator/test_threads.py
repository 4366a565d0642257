"""One query at a time on a thread, and a fence behind each."""

from __future__ import annotations

from itertools import combinations

from manual_clock import ManualClock

from docmind_lab.core.deadlines import Deadline
from docmind_lab.systems.docmind.coordinator.coordinator import ConversationThreads, thread_key

OVER = Deadline(at_s=99.0, limit_s=1.0, clock=ManualClock(100.0))


def test_a_turn_has_an_open_fence_that_is_closed_behind_it() -> None:
    threads = ConversationThreads()
    with threads.turn("t", OVER) as fence:
        assert fence is not None
        assert not fence.is_closed
    assert fence.is_closed


def test_a_turn_that_does_not_come_by_the_deadline_is_none_and_other_threads_never_wait() -> None:
    threads = ConversationThreads()
    with threads.turn("t", OVER) as first, threads.turn("t", OVER) as second, threads.turn("u", OVER) as of_another:
        assert (first is None, second is None, of_another is None) == (False, True, False)
    with threads.turn("t", OVER) as third:
        assert third is not None


def test_nothing_is_kept_of_a_thread_that_nobody_uses() -> None:
    threads = ConversationThreads()
    with threads.turn("t", OVER), threads.turn("t", OVER):
        pass
    assert not threads._turns


def test_conversations_of_different_users_are_apart_whatever_characters_their_names_have() -> None:
    conversations = [
        ("alice", "team/x"),
        ("alice/team", "x"),
        ("alice%2Fteam", "x"),
        ("alice%252Fteam", "x"),
        ("", "alice/team/x"),
        ("alice", "team%2Fx"),
    ]
    keys = [thread_key(thread_id, user_id) for user_id, thread_id in conversations]
    assert all(one != other for one, other in combinations(keys, 2))
