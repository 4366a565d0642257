"""Queries in spans: off by default, after the answer, never in its way, and without a word of anybody's."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from typing import Any

import pytest

from docmind_lab.alternatives import Cooperative
from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import EndpointRefused
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.docmind.coordinator.delivery import CloseTime, EndedQuery
from docmind_lab.views.telemetry import Telemetry
from docmind_lab.views.telemetry.exporter import measured_query

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv.attributes import error_attributes, server_attributes
from span_exporters import Failing, Hanging

CANARY = "zephyrquark"
QUESTION = f"What does a hard timeout leave running, {CANARY}?"


def test_a_query_is_a_trace_by_the_conventions_names_and_without_its_text(coordinator) -> None:
    exporter = InMemorySpanExporter()
    asked = coordinator(telemetry=Telemetry(spans=exporter))
    responses = [asked.process_query(QUESTION, thread_id=f"{CANARY}-{number}") for number in (1, 2)]
    asked.close()
    spans = exporter.get_finished_spans()
    roots = [span for span in spans if span.parent is None]
    assert [root.attributes["docmind.run.id"] for root in roots] == [r.metadata["run_id"] for r in responses]
    assert {root.attributes[gen_ai.GEN_AI_OPERATION_NAME] for root in roots} == {"invoke_workflow"}
    for root, response in zip(roots, responses, strict=True):
        inside = [span for span in spans if span.parent and span.parent.span_id == root.context.span_id]
        chats = [span for span in inside if span.attributes[gen_ai.GEN_AI_OPERATION_NAME] == "chat"]
        assert len(chats) == response.optimization_metrics["llm_calls"]
        assert (
            sum(span.attributes[gen_ai.GEN_AI_USAGE_INPUT_TOKENS] for span in chats)
            == (response.optimization_metrics["input_tokens"])
        )
        assert {span.attributes[server_attributes.SERVER_ADDRESS] for span in inside} == {"127.0.0.1"}
        took_s = (root.end_time - root.start_time) / 1e9
        assert took_s == pytest.approx(response.processing_time, abs=1e-6)
        # What servers alone know is not made up.
        assert "docmind.deadline.calls_after" not in root.attributes
    assert CANARY not in "".join(span.to_json() for span in spans)


def test_a_query_that_its_budget_cuts_is_an_error_of_that_name(coordinator) -> None:
    exporter = InMemorySpanExporter()
    # Over before anything could be found, which would be a partial answer.
    asked = coordinator(timeout_s=0.001, telemetry=Telemetry(spans=exporter))
    response = asked.process_query(QUESTION)
    asked.close()
    (root,) = [span for span in exporter.get_finished_spans() if span.parent is None]
    assert response.timed_out
    assert root.attributes["docmind.outcome"] == response.metadata["outcome"] == "timed_out"
    assert root.attributes[error_attributes.ERROR_TYPE] == response.metadata["cancel_reason"]


def test_nobody_is_told_of_anything_unless_somebody_asks(coordinator) -> None:
    before = set(threading.enumerate())
    asked = coordinator()
    asked.process_query(QUESTION)
    assert "docmind-telemetry" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_an_exporter_that_fails_changes_no_answer(coordinator, caplog: pytest.LogCaptureFixture) -> None:
    told, untold = coordinator(telemetry=Telemetry(spans=Failing())), coordinator()
    assert told.process_query(QUESTION).content == untold.process_query(QUESTION).content
    told.close()
    assert "spans: not sent (RuntimeError)" in caplog.text
    assert "secret" not in caplog.text


def test_an_exporter_that_hangs_keeps_nobody_waiting(coordinator, caplog: pytest.LogCaptureFixture) -> None:
    exporter = Hanging()
    try:
        asked = coordinator(telemetry=Telemetry(spans=exporter, patience_s=0.1))
        assert asked.process_query(QUESTION).metadata["outcome"] == "answered"
        assert exporter.begun.wait(30.0)
        # It hangs from here on, and the next question is answered as the first.
        assert asked.process_query(QUESTION).metadata["outcome"] == "answered"
        with caplog.at_level(logging.WARNING):
            asked.close()
        assert "not told of every query within 0.1 s; left behind" in caplog.text
    finally:
        exporter.released.set()


def test_queries_that_nobody_was_told_of_are_counted_at_the_end(
    coordinator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> None:
        raise RuntimeError("no run can be made of it")

    monkeypatch.setattr("docmind_lab.views.telemetry.exporter.measured_query", broken)
    asked = coordinator(timeout_s=0.001, telemetry=Telemetry(spans=InMemorySpanExporter()))
    asked.process_query(QUESTION)
    asked.close()
    assert "telemetry: queries that were dropped or could not be told of: 1" in caplog.text


def test_what_cannot_be_told_is_said_before_anything_starts(coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example:4318")
    with pytest.raises(EndpointRefused):
        coordinator(telemetry=Telemetry(spans="otlp"))


def ended(recorder: Recorder, outcome: str = "timed_out") -> EndedQuery:
    recorder.mark_returned()
    return EndedQuery(recorder, Cooperative(), Outcome(outcome))  # type: ignore[arg-type]


def test_what_a_query_left_behind_is_waited_for() -> None:
    recorder = Recorder("query-1", 1, Deadline.after(60.0))
    begun, go = threading.Event(), threading.Event()

    def orphan() -> None:
        with recorder.thread_work("router"):
            begun.set()
            go.wait()

    thread = threading.Thread(target=orphan)
    thread.start()
    begun.wait()
    query = ended(recorder)
    threading.Timer(0.05, go.set).start()
    run = measured_query(query, Settings(), "queries").run
    thread.join()
    assert run.quiescent_at_s > run.returned_at_s
    assert not run.work_censored


def test_what_is_still_at_work_at_the_horizon_is_told_of_as_it_stood() -> None:
    recorder = Recorder("query-1", 1, Deadline.after(0.01))
    begun_at = time.monotonic()
    with recorder.work("never over"):
        run = measured_query(ended(recorder), Settings(), "queries").run
    assert (run.work_censored, run.quiescent_at_s) == (True, run.horizon_s)
    # Five hundredths of a second, and what a loaded machine needs to notice.
    assert 0.05 <= time.monotonic() - begun_at < 5.0


def test_what_is_ended_by_the_close_of_a_coordinator_counts_as_not_over() -> None:
    recorder = Recorder("query-1", 1, Deadline.after(60.0))
    with recorder.work("cut by the close"):
        query = dataclasses.replace(ended(recorder), closing=CloseTime(time.monotonic()))
        recorder.event("checkpoint_put", step=1)
    run = measured_query(query, Settings(), "queries").run
    assert run.work_censored
    assert run.quiescent_at_s == run.horizon_s == query.closing.at - recorder.started_at
    assert measured_query(ended(recorder), Settings(), "queries").run.work_censored is False


def test_a_query_that_was_answered_while_its_coordinator_closed_is_whole() -> None:
    recorder = Recorder("query-1", 1, Deadline.after(60.0))
    closing = CloseTime(time.monotonic())
    run = measured_query(dataclasses.replace(ended(recorder), closing=closing), Settings(), "queries").run
    assert not run.work_censored
    assert run.returned_at_s > closing.at - recorder.started_at


def test_a_query_that_was_quiet_when_its_coordinator_closed_is_whole() -> None:
    recorder = Recorder("query-1", 1, Deadline.after(60.0))
    query = ended(recorder)
    run = measured_query(dataclasses.replace(query, closing=CloseTime(time.monotonic())), Settings(), "queries").run
    assert not run.work_censored


def test_queries_are_observed_for_as_long_as_the_runs_of_a_comparison() -> None:
    run = measured_query(ended(Recorder("query-1", 1, Deadline.after(60.0))), Settings(), "queries").run
    assert run.horizon_s == Comparison().horizon_factor * 60.0
