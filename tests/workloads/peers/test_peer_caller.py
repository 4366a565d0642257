"""Calls to the SDK's own server in virtual time: who wins, what is sent to whom, and what is left afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from docmind_lab.core.deadlines import Deadline
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.network.snapshots import RawEvent
from docmind_lab.services.hosted_behaviour import PeerBehaviour, PeerHabits
from docmind_lab.services.log import RequestRow
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.quantiles import QuantileTable
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.client import PeerClients
from docmind_lab.systems.peers.correlation import PeerResult, PeerTimeouts
from docmind_lab.virtual_time import VirtualClock


def always(seconds: float) -> QuantileTable:
    return QuantileTable.constant(seconds)


# Two steps of 1 s + 40 tokens × 0.05 s: every task takes exactly 6 s.
SIX_SECONDS = LatencyProfile("six", "Tasks of 6 s.", "a test", always(1.0), always(0.05), always(0.0))
WORK_S = 6.0
TASK = {
    "question": "When does the quoll hunt?",
    "passages": [{"id": "quoll#1", "content": "The quoll will hunt at night in the forest."}],
}
RUN = "a run"


class Bench:
    """One run: a caller, the peers, and what both sides say of it."""

    def __init__(self, habits: PeerHabits, timeouts: PeerTimeouts) -> None:
        model = OpenAIService(SIX_SECONDS)
        self.door = VirtualDoor(model, model, peers=PeerBehaviour(SIX_SECONDS, habits))
        self.clock = VirtualClock(horizon_s=120.0, on_entry=[self.door.open])
        self.timeouts = timeouts
        self.results: tuple[PeerResult, ...] = ()
        self.returned_at_s = float("nan")
        self.left: tuple[Any, ...] = ("never looked",)
        self.events: tuple[RawEvent, ...] = ()

    def run(self, work: Callable[[PeerCaller], Awaitable[Sequence[PeerResult]]]) -> Bench:
        async def main() -> None:
            clients = PeerClients(ServiceAddresses.at_port(PORT).peers_url, HttpClients())
            caller = PeerCaller(clients, timeouts=self.timeouts)
            recorder = Recorder(RUN, 7, Deadline.after(100.0))
            with recording(recorder):
                self.results = tuple(await work(caller))
            self.returned_at_s = self.clock.now()
            await caller.idle()
            await clients.aclose()
            streams = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            self.left = (*caller.correlator.store.pending(), *caller.correlator.known(), *caller._background, *streams)
            self.events = recorder.snapshot().events

        self.clock.run_async(main)
        return self

    def told(self, event: str) -> list[dict[str, Any]]:
        return [{"at": each.at, **each.detail} for each in self.events if each.event == event]

    def rows(self, call: str) -> list[RequestRow]:
        return [row for row in self.door.log.rows(RUN) if row.call_id == call]


def calls(count: int) -> list[PeerCall]:
    return [PeerCall(f"call_{n}", f"reader_{n}", TASK) for n in range(1, count + 1)]


def bench(
    habits: PeerHabits | None = None,
    timeouts: PeerTimeouts | None = None,
    *,
    count: int = 1,
    left_s: float = float("inf"),
) -> Bench:
    async def work(caller: PeerCaller) -> Sequence[PeerResult]:
        return await caller.call(calls(count), step="0", logical_task_id="t", left_s=left_s)

    return Bench(habits or PeerHabits(), timeouts or PeerTimeouts()).run(work)


SHORT = PeerTimeouts(timeout_s=2.0, hard_cap_s=5.0, listen_s=10.0)


def test_answers_come_back_in_call_order_and_leave_nothing() -> None:
    run = bench(count=3)
    assert [(result.function_call_id, result.outcome) for result in run.results] == [
        ("call_1", "completed"),
        ("call_2", "completed"),
        ("call_3", "completed"),
    ]
    assert run.results[0].payload["ids"] == ["quoll#1"]
    assert run.returned_at_s == pytest.approx(WORK_S)
    assert run.left == ()


def test_all_calls_are_registered_before_the_first_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = PeerClients.send

    async def work(caller: PeerCaller) -> Sequence[PeerResult]:
        def send(clients: PeerClients, *arguments: Any) -> Any:
            seen.append(len(caller.correlator.store.pending()))
            return original(clients, *arguments)

        monkeypatch.setattr(PeerClients, "send", send)
        return await caller.call(calls(3), step="0", logical_task_id="t")

    Bench(PeerHabits(), PeerTimeouts()).run(work)
    assert seen == [3, 3, 3]


def test_a_timeout_names_what_fired_and_cancels_the_task_at_its_instant() -> None:
    run = bench(timeouts=SHORT)
    (result,) = run.results
    assert (result.outcome, result.error) == ("timed_out", "no answer within 2.000 s: its own timeout was over")
    assert run.returned_at_s == pytest.approx(2.0)
    (task,) = run.rows("peer/reader_1/0.0.1")
    (cancel,) = run.rows("peer/reader_1/0.0.2")
    assert (task.outcome, task.ended_at) == ("cancelled", pytest.approx(2.0))
    assert cancel.received_at == pytest.approx(2.0)
    assert run.told("peer_cancel_ended")[0]["outcome"] == "accepted"
    assert run.left == ()


def test_what_the_deadline_leaves_is_the_timeout_that_fires() -> None:
    run = bench(left_s=1.5)
    assert run.results[0].error == "no answer within 1.500 s: what the run's deadline left to it was over"
    assert run.told("peer_decided")[0]["limit"] == "deadline"


def test_a_cancel_that_is_ignored_takes_a_quarter_of_a_second_and_nobody_waits_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = bench(PeerHabits(ignores_cancel=1.0), SHORT)
    assert run.returned_at_s == pytest.approx(2.0)
    assert run.results[0].outcome == "timed_out"
    (cancel,) = run.told("peer_cancel_ended")
    assert (cancel["outcome"], cancel["latency_s"]) == ("failed", pytest.approx(0.25))
    assert [record.levelname for record in caplog.records if "cancel of call" in record.message] == ["ERROR"]


def test_the_late_answer_of_a_peer_that_ignored_its_cancel_is_acknowledged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = bench(PeerHabits(ignores_cancel=1.0), SHORT)
    (late,) = run.told("peer_too_late")
    assert (late["kind"], late["late_by_s"]) == ("late", pytest.approx(WORK_S - 2.0))
    assert sum("Ignoring late response" in record.message for record in caplog.records) == 1
    (task,) = run.rows("peer/reader_1/0.0.1")
    # The server saw its answer out: the client had read it to the end.
    assert (task.outcome, task.client_gone_at, task.ended_at) == ("ok", None, pytest.approx(WORK_S))
    assert run.left == ()


def test_a_task_that_is_lost_times_out_and_its_stream_is_closed_in_the_end() -> None:
    run = bench(PeerHabits(lost=1.0, ignores_cancel=1.0), SHORT)
    (task,) = run.rows("peer/reader_1/0.0.1")
    assert run.results[0].outcome == "timed_out"
    assert task.client_gone_at == pytest.approx(2.0 + SHORT.listen_s)
    # Nothing but the end of the run ends it.
    assert (task.outcome, task.ended_at) == ("ended", pytest.approx(120.0))
    assert run.left == ()


def test_signs_of_life_put_a_timeout_off_up_to_the_hard_cap() -> None:
    alive = PeerHabits(heartbeats=1.0, heartbeat_s=1.5)
    patient = bench(alive, PeerTimeouts(timeout_s=2.0, hard_cap_s=9.0))
    assert patient.results[0].outcome == "completed"
    assert [each["extensions"] for each in patient.told("peer_extended")] == [1, 2, 3]
    capped = bench(alive, SHORT)
    assert capped.results[0].error == "no answer within 5.000 s: the cap on extended timeouts was over"
    assert capped.returned_at_s == pytest.approx(5.0)


def test_a_sign_of_life_does_not_outlast_what_the_deadline_leaves() -> None:
    run = bench(PeerHabits(heartbeats=1.0, heartbeat_s=1.5), PeerTimeouts(timeout_s=2.0, hard_cap_s=9.0), left_s=3.0)
    assert run.returned_at_s == pytest.approx(3.0)
    assert run.told("peer_decided")[0]["limit"] == "deadline"


def test_an_answer_that_comes_exactly_at_the_timeout_is_too_late() -> None:
    run = bench(timeouts=PeerTimeouts(timeout_s=WORK_S))
    assert [result.outcome for result in run.results] == ["timed_out"]
    assert len(run.told("peer_decided")) == 1


def test_a_call_that_cannot_be_sent_has_failed_and_the_others_go_on() -> None:
    async def work(caller: PeerCaller) -> Sequence[PeerResult]:
        url = ServiceAddresses.at_port(PORT).peers_url
        nobody = {"reader_1": "http://127.0.0.1:2/a2a/reader_1"}
        caller.clients = PeerClients(url, HttpClients(), elsewhere=nobody)
        return await caller.call(calls(2), step="0", logical_task_id="t")

    run = Bench(PeerHabits(), PeerTimeouts()).run(work)
    assert [result.outcome for result in run.results] == ["send_failed", "completed"]
    assert run.told("peer_cancel_sent") == []
    assert run.left == ()


def cancelled_after(seconds: float, count: int) -> Bench:
    """A run whose step of so many calls is cancelled after so long."""

    async def work(caller: PeerCaller) -> Sequence[PeerResult]:
        parent = asyncio.create_task(caller.call(calls(count), step="0", logical_task_id="t"))
        await asyncio.sleep(seconds)
        parent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await parent
        return ()

    return Bench(PeerHabits(), PeerTimeouts()).run(work)


def test_cancelling_the_parent_claims_and_cancels_all_children_and_retriggers_nothing() -> None:
    run = cancelled_after(1.0, 3)
    assert run.returned_at_s == pytest.approx(1.0)
    assert [each["outcome"] for each in run.told("peer_decided")] == ["cancelled"] * 3
    assert [each["outcome"] for each in run.told("peer_cancel_ended")] == ["accepted"] * 3
    assert run.told("peer_retriggered") == []
    assert [row.ended_at for row in run.door.log.rows(RUN) if row.outcome == "cancelled"] == pytest.approx([1.0] * 3)
    assert run.left == ()


def test_a_task_that_is_not_known_yet_is_cancelled_as_soon_as_it_is() -> None:
    # Registered, and not yet sent: the tasks of the call have not had their turn.
    run = cancelled_after(0.0, 1)
    (known,), (cancel,) = run.told("peer_task_known"), run.told("peer_cancel_sent")
    assert known["at"] <= cancel["at"]
    assert run.told("peer_cancel_ended")[0]["outcome"] == "accepted"
    assert run.rows("peer/reader_1/0.0.1")[0].outcome == "cancelled"


def test_already_terminal_and_not_found_are_normal_answers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    answers: list[str] = []

    async def work(caller: PeerCaller) -> Sequence[PeerResult]:
        task_ids = [news.task_id async for news in caller.clients.send("reader_1", TASK, 8.0) if news.kind == "known"]
        answers.append(await caller.clients.cancel("reader_1", task_ids[0]))
        answers.append(await caller.clients.cancel("reader_1", "no such task"))
        return ()

    Bench(PeerHabits(), PeerTimeouts()).run(work)
    assert answers == ["already_terminal", "not_found"]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
