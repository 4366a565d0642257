from __future__ import annotations

import contextlib
import threading

import pytest

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network import Attempt, LogicalCall, current_call
from docmind_lab.network.recorder import Recorder


@pytest.fixture
def recorder(manual_clock: Clock) -> Recorder:
    return Recorder("r", 7, Deadline.after(2.0, manual_clock), manual_clock)


def test_ordinals_count_the_calls_of_one_role_at_one_position(recorder: Recorder) -> None:
    steps = []
    for role, position in (("router", "1.0"), ("router", "1.0"), ("retrieval", "2.1"), ("router", "1.0")):
        with recorder.call("llm", role, position) as call:
            assert current_call() is call
            steps.append(call.step)
    assert steps == ["1.0.1", "1.0.2", "2.1.1", "1.0.3"]
    assert current_call() is None


def attempt_of(recorder: Recorder, call: LogicalCall, number: int = 1) -> Attempt:
    attempt = Attempt(call, number, recorder.clock.now())
    recorder.attempt_started(attempt)
    return attempt


def test_it_is_quiet_when_no_node_graph_or_attempt_is_at_work(recorder: Recorder) -> None:
    assert recorder.quiet()
    with recorder.work("node"):
        assert not recorder.quiet()
    with recorder.call("llm", "router", "0.0") as call:
        attempt = attempt_of(recorder, call)
        assert not recorder.quiet()
        assert not recorder.wait_quiet(0.0)
        attempt.end("ok")
    assert recorder.wait_quiet(0.0)


def test_an_attempt_ends_once_and_a_snapshot_does_not_change_afterwards(recorder: Recorder) -> None:
    with recorder.call("llm", "router", "0.0") as call:
        attempt = attempt_of(recorder, call)
        before = recorder.snapshot()
        attempt.end("timeout")
        attempt.end("ok")
    assert before.attempts[0].outcome == "open"
    assert recorder.snapshot().attempts[0].outcome == "timeout"
    assert recorder.quiet()


def test_threads_inside_the_runs_work_are_left_and_shared_ones_are_not(recorder: Recorder) -> None:
    begun, end = threading.Event(), threading.Event()

    def orphan() -> None:
        with recorder.work("node"):
            begun.set()
            end.wait()

    thread = threading.Thread(target=orphan)
    thread.start()
    begun.wait()
    recorder.share_thread()
    with recorder.work("on the shared thread"):
        snapshot = recorder.snapshot()
    end.set()
    thread.join()
    assert snapshot.threads_left == 1
    assert set(snapshot.open_work) == {"node", "on the shared thread"}
    assert recorder.snapshot().threads_left == 0


def test_a_refused_call_is_an_attempt_that_never_started(recorder: Recorder) -> None:
    recorder.refuse("llm", "router", "1.0")
    (attempt,) = recorder.snapshot().attempts
    assert (attempt.outcome, attempt.sent_at) == ("refused", None)
    assert recorder.quiet()
    assert recorder.unanswered_requests(set()) == 0
    assert [event.event for event in recorder.snapshot().events][-1] == "refused"


def test_a_sent_request_that_no_service_knows_is_unanswered(recorder: Recorder) -> None:
    with recorder.call("llm", "router", "0.0") as call:
        attempt_of(recorder, call).note_sent()
    assert recorder.unanswered_requests(set()) == 1
    assert recorder.unanswered_requests({(call.call_id, 1)}) == 0


def test_tokens_go_to_the_latest_attempt_of_the_call_in_force(recorder: Recorder) -> None:
    with recorder.call("llm", "router", "0.0") as call:
        for number in (1, 2):
            attempt_of(recorder, call, number)
        recorder.note_tokens(10, 3)
    assert [attempt.output_tokens for attempt in recorder.snapshot().attempts] == [None, 3]


def test_what_came_after_the_horizon_is_not_in_a_snapshot_until_it() -> None:
    recorder = Recorder("r", 7, Deadline(at_s=102.0, limit_s=2.0, clock=WALL), WALL)
    with recorder.call("llm", "router", "0.0") as call:
        for number, (begun, ended) in enumerate([(101.0, 101.5), (101.0, 105.0), (104.0, 104.5)], 1):
            recorder.attempt_started(
                Attempt(call, number, begun, acquired_at=begun, first_byte_at=ended, ended_at=ended, outcome="ok")
            )
    recorder.event("returned", at=105.0)
    until = recorder.snapshot().until(103.0)
    assert [(attempt.number, attempt.outcome, attempt.ended_at) for attempt in until.attempts] == [
        (1, "ok", 101.5),
        (2, "open", None),
    ]
    assert until.attempts[1].first_byte_at is None
    assert "returned" not in {event.event for event in until.events}
    assert until.taken_at == 103.0


@pytest.mark.parametrize("error", [None, KeyError()])
def test_work_in_a_thread_is_told_of_by_its_beginning_and_its_end(
    recorder: Recorder, manual_clock: Clock, error: Exception | None
) -> None:
    manual_clock.sleep(0.25)
    with contextlib.suppress(KeyError), recorder.thread_work("router", "router_agent/model"):
        manual_clock.sleep(0.5)
        assert not recorder.quiet()
        if error is not None:
            raise error
    assert recorder.quiet()
    *_, begun, ended = recorder.snapshot().events
    started_at = recorder.started_at
    assert (begun.event, begun.role, begun.at - started_at) == ("thread_started", "router", 0.25)
    assert (ended.event, ended.at - started_at, ended.detail["begun_at_s"]) == ("thread_ended", 0.75, 0.25)


def test_a_thread_that_is_still_at_work_has_begun_in_a_snapshot(recorder: Recorder, manual_clock: Clock) -> None:
    with recorder.thread_work("router"):
        manual_clock.sleep(0.5)
        seen = recorder.snapshot()
    assert [event.event for event in seen.events] == ["run_started", "thread_started"]
    assert seen.open_work == ("worker thread",)


def test_a_thread_whose_work_takes_no_time_is_not_told_of(recorder: Recorder) -> None:
    with recorder.thread_work():
        assert [event.event for event in recorder.snapshot().events] == ["run_started"]
    assert [event.event for event in recorder.snapshot().events] == ["run_started"]
