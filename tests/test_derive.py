"""Derived columns: recomputed here in another way, from the tables alone."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_facts import DEADLINE_S, HORIZON_S, facts

from docmind_lab.alternatives import Cooperative
from docmind_lab.core.clock import WALL
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import CALL_OUTCOMES, NAN, RUN_OUTCOMES
from docmind_lab.experiments.measurement.derive import Answer, RunFacts, call_records, derive_run, event_records
from docmind_lab.network import Attempt
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.log import RequestRow
from docmind_lab.tables.frames import blank_row, to_frame
from docmind_lab.tables.records import TABLES, CallRecord, EventRecord, RunRecord

instants = st.floats(0, HORIZON_S, allow_nan=False).map(lambda value: round(value, 4))


@st.composite
def call_rows(draw: st.DrawFn) -> CallRecord:
    started = draw(instants)
    ended = draw(st.one_of(st.just(NAN), st.floats(0, 5).map(lambda length: round(started + length, 4))))
    seen_from = draw(st.sampled_from(["client", "server"]))
    outcome = draw(st.sampled_from(CALL_OUTCOMES if seen_from == "client" else ("ok", "cancelled", "abandoned")))
    return CallRecord(
        study_id="s",
        run_id="r",
        call_id=f"c{draw(st.integers(0, 9))}",
        parent_call_id="",
        attempt=1,
        seen_from=seen_from,
        workload="supervisor",
        alternative="cooperative",
        role="router",
        step="0.0.1",
        kind=draw(st.sampled_from(["llm", "retrieval"])),
        started_at_s=started,
        first_byte_at_s=NAN,
        ended_at_s=ended,
        latency_s=ended - started,
        queue_wait_s=0.0,
        timeout_s=NAN,
        remaining_at_start_s=DEADLINE_S - started,
        overrun_s=max(0.0, ended - DEADLINE_S) if not math.isnan(ended) else NAN,
        outcome=outcome,
        started_after_deadline=started > DEADLINE_S,
        ended_after_return=False,
        input_tokens=NAN,
        output_tokens=NAN,
        error_type="",
    )


@st.composite
def event_rows(draw: st.DrawFn) -> EventRecord:
    at = draw(instants)
    name = draw(
        st.sampled_from(
            ["checkpoint_put", "node_ended", "tokens_generated", "attempt_started", "retrieved", "result_scored"]
        )
    )
    detail: dict[str, Any] = {}
    if name == "tokens_generated":
        detail = {"begun_at_s": round(at * draw(st.floats(0, 1)), 4), "tokens": draw(st.integers(1, 200))}
    elif name == "attempt_started":
        detail = {"kind": draw(st.sampled_from(["llm", "retrieval", "tool"])), "capped": draw(st.booleans())}
    elif name == "result_scored":
        detail = {"recall": 1.0, "score": draw(st.floats(0, 1))}
    elif name == "retrieved":
        detail = {"topics": draw(st.lists(st.sampled_from(["with", "try", "for"]), unique=True))}
    return EventRecord("s", "r", at, name, "router", detail)


def recomputed(calls: pd.DataFrame, events: pd.DataFrame, returned: float, censored: bool) -> dict[str, float]:
    """The derived columns from frames, by counting instead of by formulas."""
    # The requests of another process have no row of a client.
    side = "client" if (calls.seen_from == "client").any() else "server"
    client = calls[(calls.seen_from == side) & (calls.outcome != "refused")]
    server = calls[calls.seen_from == "server"]
    details = events["detail"].map(json.loads)
    busy = np.clip(server.ended_at_s.fillna(HORIZON_S) - np.maximum(server.started_at_s, DEADLINE_S), 0, None).sum()
    tokens = 0
    for at, detail in zip(
        events.at_s[events.event == "tokens_generated"], details[events.event == "tokens_generated"], strict=True
    ):
        begun, count = detail["begun_at_s"], detail["tokens"]
        # One by one: token i of n is there at begun + i/n of the stretch.
        tokens += sum(begun + (at - begun) * i / count > DEADLINE_S + 1e-12 for i in range(1, count + 1))
    attempts = [d for d in details[events.event == "attempt_started"] if d["kind"] != "tool"]
    capped = [d["capped"] for d in attempts]
    ended = calls.ended_at_s[calls.outcome != "refused"].dropna().tolist()
    ended += events.at_s[events.event.isin(["checkpoint_put", "node_ended", "tokens_generated"])].tolist()
    quiescent = HORIZON_S if censored else max(ended, default=0.0)
    early = events[(events.event == "retrieved") & (events.at_s <= DEADLINE_S)].index
    found = {topic for index in early for topic in details[index]["topics"]}
    scored = events[events.event == "result_scored"].sort_values("at_s", kind="stable")
    held = [(0.0, 0.0), *((at, details[index]["score"]) for index, at in scored["at_s"].items())]
    ends = [*(at for at, _ in held[1:]), math.inf]
    lengths = [max(0.0, min(end, DEADLINE_S) - min(at, DEADLINE_S)) for (at, _), end in zip(held, ends, strict=True)]
    return {
        "mean_score": sum(score * length for (_, score), length in zip(held, lengths, strict=True)) / DEADLINE_S,
        "llm_calls": int((client.kind == "llm").sum()),
        "retrieval_calls": int((client.kind == "retrieval").sum()),
        "calls_after_deadline": float((server.started_at_s > DEADLINE_S).sum()),
        "busy_after_deadline_s": float(busy),
        "tokens_after_deadline": float(tokens),
        "late_checkpoints": int(((events.event == "checkpoint_put") & (events.at_s > returned)).sum()),
        "propagation_coverage": float(np.mean(capped)) if capped else NAN,
        "quiescent_at_s": quiescent,
        "work_overrun_s": max(0.0, quiescent - DEADLINE_S),
        "caller_overrun_s": max(0.0, returned - DEADLINE_S) if not math.isnan(returned) else NAN,
        "recall_at_deadline": len(found & {"with", "try"}) / 2,
    }


@given(
    calls=st.lists(call_rows(), max_size=12),
    events=st.lists(event_rows(), max_size=12),
    returned=st.one_of(st.just(NAN), instants),
    censored=st.booleans(),
    outcome=st.sampled_from(RUN_OUTCOMES),
)
def test_derived_columns_equal_an_independent_recomputation_from_calls_and_events(
    calls: list[CallRecord], events: list[EventRecord], returned: float, censored: bool, outcome: Any
) -> None:
    rows = list(events)
    if not math.isnan(returned):
        rows.append(EventRecord("s", "r", returned, "returned", "", {}))
    run = derive_run(facts(), Answer(outcome, answer_score=0.5), calls, rows, work_censored=censored, threads_left=0)
    expected = recomputed(to_frame("calls", calls), to_frame("events", rows), returned, censored)
    for column, value in expected.items():
        # A token on the edge of the deadline may fall either way in floating point, in one stretch each.
        slack = len(events) if column == "tokens_after_deadline" else 1e-9
        assert getattr(run, column) == pytest.approx(value, abs=slack, nan_ok=True), column


def test_answered_in_time_needs_an_answer_and_a_return_by_the_deadline() -> None:
    def derived(outcome: Any, returned: float) -> RunRecord:
        events = [EventRecord("s", "r", returned, "returned", "", {})]
        return derive_run(facts(), Answer(outcome), [], events, work_censored=False, threads_left=0)

    assert derived("answered", DEADLINE_S).answered_in_time
    assert not derived("answered", DEADLINE_S + 0.001).answered_in_time
    assert not derived("partial", 1.0).answered_in_time


def test_without_a_server_log_everything_after_the_deadline_is_unknown_not_zero() -> None:
    run = derive_run(facts(has_server_log=False), Answer("timed_out"), [], [], work_censored=False, threads_left=0)
    assert math.isnan(run.calls_after_deadline)
    assert math.isnan(run.busy_after_deadline_s)
    assert math.isnan(run.tokens_after_deadline)


def test_coverage_is_nan_for_an_alternative_that_does_not_propagate() -> None:
    events = [EventRecord("s", "r", 0.1, "attempt_started", "router", {"kind": "llm", "capped": True})]
    propagating = derive_run(facts(), Answer("answered"), [], events, work_censored=False, threads_left=0)
    other = derive_run(
        facts(deadline_propagation=False), Answer("answered"), [], events, work_censored=False, threads_left=0
    )
    assert propagating.propagation_coverage == 1.0
    assert math.isnan(other.propagation_coverage)


def test_coordination_overhead_is_the_return_less_the_union_of_calls_and_only_when_alone() -> None:
    # Backoff is part of a call: it lasts until its agent has the answer. 0.6 s and 0.1 s, two of them overlapping.
    spans = [(0.1, 0.5), (0.4, 0.7), (0.9, 1.0)]
    events = [
        EventRecord("s", "r", ended, "call_ended", "router", {"begun_at_s": begun, "kind": "llm"})
        for begun, ended in spans
    ]
    events.append(EventRecord("s", "r", 1.2, "returned", "", {}))

    def overhead(**changes: Any) -> float:
        run = derive_run(facts(**changes), Answer("answered"), [], events, work_censored=False, threads_left=0)
        return run.coordination_overhead_s

    assert overhead() == pytest.approx(1.2 - 0.7)
    assert math.isnan(overhead(alone=False))


def test_rows_are_relative_to_the_runs_start_and_say_who_saw_them() -> None:
    recorder = Recorder("r", 7, Deadline(at_s=102.0, limit_s=2.0, clock=WALL), WALL)
    with recorder.call("llm", "router", "1.0") as call:
        recorder.attempt_started(
            Attempt(call, 1, 101.0, timeout_s=1.0, acquired_at=101.1, sent_at=101.1, ended_at=101.9, outcome="ok")
        )
    recorder.returned_at = 101.5
    row = RequestRow("llm", "r", call.call_id, 1, "router", "1.0.1", 101.2, ended_at=103.0, outcome="ok")
    row.token_spans.append((102.0, 103.0, 10))
    row.output_tokens = 10
    client, server = call_records(facts(), recorder, recorder.snapshot(), [row])
    assert (client.seen_from, client.started_at_s, client.queue_wait_s) == ("client", 1.0, pytest.approx(0.1))
    assert (client.timeout_s, client.remaining_at_start_s) == (1.0, 1.0)
    assert client.outcome == "abandoned", "it was unended when the caller had its answer"
    assert client.ended_after_return
    assert (server.seen_from, server.started_at_s) == ("server", pytest.approx(1.2))
    assert (server.overrun_s, server.outcome, server.output_tokens) == (pytest.approx(1.0), "abandoned", 10.0)
    assert server.call_id == client.call_id
    generated = [
        e for e in event_records(facts(), recorder, recorder.snapshot(), [row]) if e.event == "tokens_generated"
    ]
    assert generated[0].detail["begun_at_s"] == pytest.approx(2.0)


def test_what_a_service_did_past_the_observation_is_open_in_the_tables() -> None:
    recorder = Recorder("r", 7, Deadline(at_s=WALL.now() + 2.0, limit_s=2.0, clock=WALL), WALL)
    started = recorder.started_at
    seen = dataclasses.replace(recorder.snapshot(), taken_at=started + 4)

    def record(ended_at: float | None, outcome: str = "ok") -> CallRecord:
        row = RequestRow("llm", "r", "c1", 1, "router", "1.0.1", started + 1, ended_at=ended_at, outcome=outcome)  # type: ignore[arg-type]
        (made,) = call_records(facts(), recorder, seen, [row])
        return made

    for past in (record(None, "open"), record(started + 4.5), record(started + 99)):
        assert math.isnan(past.ended_at_s)
        assert past.outcome == "abandoned"
    assert record(seen.taken_at).ended_at_s == pytest.approx(4.0), "by the instant of the observation it had ended"


RAISED_AT_S = HELD_WITHIN_S


@pytest.mark.parametrize(
    ("call", "attempt"),
    [
        ({}, 2),
        ({"ended_at_s": 0.0}, 2),
        ({"ended_at_s": -0.001}, 0),
        ({"ended_at_s": RAISED_AT_S + 0.001}, 0),
        ({"role": "planner"}, 0),
        ({"error_type": ""}, 0),
    ],
    ids=str,
)
def test_the_attempt_that_failed_is_that_of_the_nodes_last_call_before_it_raised(
    call: dict[str, Any], attempt: int
) -> None:
    failed = {
        "seen_from": "client",
        "role": "router",
        "attempt": 2,
        "ended_at_s": RAISED_AT_S,
        "error_type": "APIError",
    }
    record = CallRecord(**blank_row(TABLES["calls"][1]) | failed | call)
    raised = EventRecord("s", "r", RAISED_AT_S, "node_ended", "router", {"node": "router", "outcome": "APIError"})
    answer = Answer("failed", error_type="APIError")
    run = derive_run(facts(), answer, [record], [raised], work_censored=False, threads_left=0)
    assert (run.error_type, run.error_node, run.error_attempt) == ("APIError", "router", attempt)


def test_a_run_is_observed_for_five_timeouts_where_nothing_else_is_said() -> None:
    others = dataclasses.asdict(facts())
    for name in ("alternative", "alternative_options", "deadline_propagation", "horizon_s", "budget"):
        others.pop(name)
    timeout_s = others.pop("decision_timeout_s")
    assert RunFacts.of(Cooperative(), timeout_s, **others).horizon_s == 5 * timeout_s
    assert RunFacts.of(Cooperative(), timeout_s, horizon_s=3.0, **others).horizon_s == 3.0
