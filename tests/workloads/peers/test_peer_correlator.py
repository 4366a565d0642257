"""What each piece of news does to a call, in every order that matters; no network, no time but a clock by hand."""

from __future__ import annotations

import logging
import threading

import pytest
from manual_clock import ManualClock

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.peers.correlation import CorrelationEntry, PeerResult, PendingCalls
from docmind_lab.systems.peers.correlator import Correlator


def entry(number: int, peer: str = "reader_1") -> CorrelationEntry:
    return CorrelationEntry(f"t/0/{number}", f"call_{number}", peer, "t", "t/0", 8.0)


class Parent:
    """A step of three calls, and what its parent was told."""

    def __init__(self, clock: ManualClock, calls: int = 3) -> None:
        self.correlator = Correlator(clock=clock)
        self.entries = [entry(number) for number in range(1, calls + 1)]
        self.told: list[tuple[PeerResult, ...]] = []
        self.correlator.begin(self.entries, self.told.append)

    def time_out(self, which: CorrelationEntry) -> None:
        claimed = self.correlator.timed_out(which)
        assert claimed is not None
        result = PeerResult(claimed.function_call_id, claimed.peer_agent_name, "timed_out", error="its own timeout")
        self.correlator.deliver(result, claimed)


@pytest.fixture
def parent(manual_clock: ManualClock) -> Parent:
    return Parent(manual_clock)


def test_when_the_answer_wins_the_timeout_says_so_at_info_and_does_nothing(
    parent: Parent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    parent.correlator.answered(parent.entries[0], {})
    assert parent.correlator.timed_out(parent.entries[0]) is None
    assert [(record.levelname, "nothing to do" in record.message) for record in caplog.records] == [("INFO", True)]


def test_a_failed_call_is_an_error_result_and_one_that_is_decided_cannot_fail(parent: Parent) -> None:
    assert parent.correlator.send_failed(parent.entries[0], "ConnectError")
    assert not parent.correlator.send_failed(parent.entries[0], "ConnectError")
    for other in parent.entries[1:]:
        parent.correlator.answered(other, {})
    assert parent.told[0][0].outcome == "send_failed"
    assert "ConnectError" in parent.told[0][0].error


def test_the_result_of_a_call_whose_parent_is_gone_is_logged_and_dropped(
    parent: Parent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    parent.correlator.forget("t/0")
    for each in parent.entries:
        parent.correlator.answered(each, {})
    assert parent.told == []
    assert sum("parent of call" in record.message and "gone" in record.message for record in caplog.records) == 3


def test_a_timed_out_call_without_a_peer_name_is_a_warning_and_goes_on_locally(
    manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    correlator, told = Correlator(clock=manual_clock), []
    nameless = entry(1, peer="")
    correlator.begin([nameless], told.append)
    claimed = correlator.timed_out(nameless)
    assert claimed is not None
    correlator.deliver(PeerResult("call_1", "", "timed_out"), claimed)
    assert len(told) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_dropping_a_task_leaves_nothing_pending_and_nothing_expected(parent: Parent) -> None:
    parent.correlator.drop("another")
    assert len(parent.correlator.store.pending()) == 3
    parent.correlator.drop("t")
    assert parent.correlator.store.pending() == ()
    assert parent.correlator.known() == ()
    assert parent.told == []


# ---- the store


def test_of_many_threads_that_claim_one_entry_exactly_one_gets_it() -> None:
    store, entries = PendingCalls(), [entry(number) for number in range(40)]
    store.register(entries)
    claimed: list[CorrelationEntry | None] = []

    def claim_all() -> None:
        claimed.extend(store.claim(each.sub_task_id) for each in entries)

    threads = [threading.Thread(target=claim_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.sub_task_id for each in claimed if each is not None) == sorted(e.sub_task_id for e in entries)
    assert store.pending() == ()


def test_all_calls_of_a_step_are_registered_or_none() -> None:
    store = PendingCalls()
    store.register([entry(2)])
    with pytest.raises(ConfigurationError, match="'t/0/2' is pending already"):
        store.register([entry(1), entry(2), entry(3)])
    assert store.pending() == ("t/0/2",)


def test_an_extension_counts_for_a_pending_entry_only_and_from_what_was_seen() -> None:
    store = PendingCalls()
    store.register([entry(1)])
    # The second is of one who has not seen the first.
    assert [store.extend("t/0/1", seen) for seen in (0, 0, 1)] == [True, False, True]
    claimed = store.claim("t/0/1")
    assert claimed is not None
    assert claimed.extensions == 2
    assert not store.extend("t/0/1", 2)
