"""What each rule does to runs whose calls and steps are written by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest

from docmind_lab.analysis.traces.model import Generation, Span, TracedRun, Traces
from docmind_lab.analysis.traces.outcomes import ENDINGS, Replay, RunOutcomes
from docmind_lab.analysis.traces.rules import rule_of, rules_of
from docmind_lab.core.catalogue import CATALOGUE
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, PhaseBehaviour, ServerBehaviour


def run(trace_id: str = "r", ended_at_s: float = 10.0, **others: object) -> TracedRun:
    values = {"session": trace_id, "source": "test", "observed_until_s": 60.0, "outcome": "answered"}
    return TracedRun(**{"trace_id": trace_id, "ended_at_s": ended_at_s, **values, **others})  # type: ignore[arg-type]


def call(span_id: str, started_at_s: float, ended_at_s: float, parent_id: str = "", **others: object) -> Span:
    values = {"trace_id": "r", "role": "writer", "kind": "llm", **others}
    return Span(span_id=span_id, parent_id=parent_id, started_at_s=started_at_s, ended_at_s=ended_at_s, **values)  # type: ignore[arg-type]


def step(span_id: str, started_at_s: float, ended_at_s: float, parent_id: str = "") -> Span:
    return call(span_id, started_at_s, ended_at_s, parent_id, kind="step")


TWO_CALLS = Traces.of(
    [run(result_from_s=4.0)],
    [step("a", 0, 4), call("a1", 0, 4, "a"), step("b", 4, 10), call("b1", 4, 6, "b"), call("b2", 6, 10, "b")],
    [Generation("r", "b2", 7.0, 10.0, 30)],
)


def at(deadline_s: float, name: str, traces: Traces = TWO_CALLS, behaviour: ServerBehaviour = STOPS) -> RunOutcomes:
    return Replay(traces, behaviour).under(rule_of(name).rule, [deadline_s])


def one(outcomes: RunOutcomes) -> tuple[str, float, float, float, float]:
    return (
        ENDINGS[outcomes.outcome[0, 0]],
        float(outcomes.returned_at_s[0, 0]),
        float(outcomes.calls_after[0, 0]),
        float(outcomes.busy_after_s[0, 0]),
        float(outcomes.tokens_after[0, 0]),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("unguarded", ("answered", 10, 1, 5, 30)),
        ("fake_timeout", ("timed_out", 10, 1, 5, 30)),
        ("A", ("partial", 5, 0, 0, 0)),
        ("B", ("timed_out", 5, 1, 5, 30)),
        ("B:drain", ("timed_out", 5, 1, 5, 30)),
        ("B:naive", ("timed_out", 10, 1, 5, 30)),
        ("B:propagate", ("timed_out", 5, 0, 0, 0)),
        ("B:streamed", ("partial", 5, 1, 5, 30)),
        ("C", ("partial", 5, 0, 0, 0)),
        ("D", ("answered", 10, 1, 5, 30)),
        ("E", ("partial", 5, 0, 0, 0)),
        ("E:unpropagated", ("partial", 5.05, 0, 0.05, 0)),
        ("F", ("partial", 5, 0, 0, 0)),
    ],
)
def test_each_alternative_does_its_own_at_a_deadline_within_the_second_step(
    name: str, expected: tuple[str, float, float, float, float]
) -> None:
    outcome, *numbers = one(at(5, name))
    assert outcome == expected[0]
    assert numbers == pytest.approx(expected[1:])


@pytest.mark.parametrize("named", rules_of(None), ids=lambda named: named.alternative)
def test_a_run_that_ends_by_its_deadline_is_untouched(named: object) -> None:
    outcomes = Replay(TWO_CALLS).under(named.rule, [10.0])  # type: ignore[attr-defined]
    assert one(outcomes) == ("answered", 10.0, 0.0, 0.0, 0.0)
    assert outcomes.in_time.all()


def test_a_stop_flag_ends_a_run_with_the_step_under_way_and_no_later_step_begins() -> None:
    assert one(at(2, "D")) == ("partial", 4.0, 0.0, 2.0, 0.0)


def test_a_stop_flag_waits_for_the_longest_of_parallel_steps() -> None:
    parallel = Traces.of(
        [run()], [step("a", 0, 3), step("b", 0, 7), call("b1", 0, 7, "b"), step("c", 7, 10), call("c1", 7, 10, "c")]
    )
    assert one(at(1, "D", parallel))[1:4] == (7.0, 0.0, 6.0)


def test_no_step_begins_beside_one_that_never_ends() -> None:
    never = float("nan")
    hung = Traces.of(
        [run(ended_at_s=never, outcome="cut")],
        [step("a", 0, never), call("a1", 0, never, "a", outcome="open"), step("b", 7, 9), call("b1", 7, 9, "b")],
    )
    assert one(at(5, "D", hung))[2:4] == (0.0, 55.0)
    assert one(at(5, "unguarded", hung))[2:4] == (1.0, 57.0)


def test_a_result_of_a_step_that_never_began_is_not_returned() -> None:
    late = Traces.of([run(result_from_s=5.0)], [step("a", 0, 6), step("x", 0, 4), step("y", 4, 5), step("z", 6, 10)])
    assert one(at(2, "D", late))[0] == "timed_out"


def test_calls_without_a_step_around_them_are_steps_and_the_next_one_does_not_begin() -> None:
    plain = Traces.of([run()], [call("a", 0, 4), call("b", 5, 10)])
    assert one(at(2, "D", plain))[:3] == ("timed_out", 4.0, 0.0)
    # In the pause between two calls the flag is looked at when the next would begin.
    assert one(at(4.5, "D", plain))[:3] == ("timed_out", 5.0, 0.0)
    # A call that ends just at the deadline is over, and the flag comes too late for the look after it.
    assert one(at(4, "D", plain))[:3] == ("timed_out", 5.0, 0.0)


def test_a_server_that_goes_on_finishes_the_call_that_was_cut_and_no_other() -> None:
    assert one(at(5, "A", behaviour=GOES_ON))[2:4] == (0.0, 1.0)
    assert one(at(7.5, "A", behaviour=GOES_ON))[2:] == (0.0, 2.5, 25.0)


def test_a_server_that_notices_late_works_until_then() -> None:
    slow = ServerBehaviour(name="slow", phases={"generation": PhaseBehaviour(work_ends="at_once", delay_s=1.0)})
    assert one(at(7.5, "C", behaviour=slow))[3] == pytest.approx(1.0)
    looks = ServerBehaviour(
        name="looks", phases={"generation": PhaseBehaviour(work_ends="at_once", delay_s=0.0, checks_every_s=0.8)}
    )
    # It looks 0.8, 1.6 s … after the call came at 6 s; the first look after 7.5 is at 7.6.
    assert one(at(7.5, "C", behaviour=looks))[3] == pytest.approx(0.1)


def test_a_server_that_notices_by_writing_ends_a_stream_with_its_next_tokens() -> None:
    stream = Traces.of(
        [run()],
        [call("a", 0, 10, first_byte_at_s=2.0)],
        [Generation("r", "a", 2, 5, 3), Generation("r", "a", 5, 10, 5)],
    )
    writes = ServerBehaviour(name="writes", phases={"mid_stream": PhaseBehaviour(work_ends="at_next_write")})
    assert one(at(4, "C", stream, writes))[2:] == (0.0, 1.0, 1.0)


def test_what_a_trace_did_not_observe_is_a_lower_bound() -> None:
    hung = Traces.of([run(ended_at_s=float("nan"), outcome="cut")], [call("a", 0, float("nan"), outcome="open")])
    outcomes = at(5, "B", hung)
    assert one(outcomes)[3] == 55.0
    assert outcomes.censored.all()
    assert not at(5, "A", hung).censored.any()
    assert one(at(5, "unguarded", hung))[0] == "unfinished"


def test_a_call_that_a_server_goes_on_with_past_the_horizon_is_a_lower_bound() -> None:
    replay, rule = Replay(TWO_CALLS, GOES_ON), rule_of("C").rule
    assert replay.under(rule, [7.5], horizon_factor=1.2).censored.all()
    assert not replay.under(rule, [7.5], horizon_factor=2.0).censored.any()


def test_the_same_deadline_under_another_horizon_is_another_answer() -> None:
    hung = Traces.of([run(ended_at_s=float("nan"), outcome="cut")], [call("a", 0, float("nan"), outcome="open")])
    replay = Replay(hung)
    late = [replay.under(rule_of("B").rule, [5.0], horizon_factor=factor).busy_after_s[0, 0] for factor in (2, 4, 2)]
    assert late == [5.0, 15.0, 5.0]


def test_retries_of_its_own_take_another_path_from_the_first_error_on() -> None:
    failed = Traces.of([run(retries="sdk:2")], [call("a", 0, 2, outcome="error"), call("b", 3, 10)])
    assert at(1, "A", failed).known.all()
    assert not at(5, "A", failed).known.any()
    assert at(5, "C", failed).known.all()


def test_a_failure_that_no_call_shows_ends_what_is_known_too() -> None:
    failed = Traces.of([run(ended_at_s=4.0, outcome="failed", retries="sdk:2")], [call("a", 0, 2), call("b", 2, 4)])
    assert at(3, "A", failed).known.all()
    assert not at(6, "A", failed).known.any()


def test_a_call_with_next_to_no_time_left_is_refused_where_the_deadline_is_propagated() -> None:
    late = Traces.of([run()], [call("a", 0, 4.998), call("b", 4.998, 10)])
    assert one(at(5, "A", late, GOES_ON))[3] == 0.0
    assert one(at(5, "C", late, GOES_ON))[3] == 5.0


def test_an_agent_that_adapts_takes_another_path_where_it_is_told_of_the_deadline() -> None:
    adapting = Traces.of([run(adapts=True)], [call("a", 0, 2), call("b", 3, 10)])
    assert not at(5, "A", adapting).known.any()
    assert at(5, "B", adapting).known.all()
    assert at(5, "C", adapting).known.all()


def test_the_task_of_a_peer_that_adapts_outlives_a_request_that_was_cut() -> None:
    peer = {"kind": "peer", "server_started_at_s": 3.0, "server_ended_at_s": 10.0}
    runs = [run(adapts=True), run("plain")]
    traces = Traces.of(runs, [call("p", 3, 10, **peer), call("p", 3, 10, trace_id="plain", **peer)])
    assert at(5, "C", traces).known[:, 0].tolist() == [False, True]
    assert at(2, "C", traces).known.all(), "it had not begun"


def test_what_a_server_asks_of_others_it_asks_until_its_own_work_ends() -> None:
    spans = [
        call("gateway", 0, 10, kind="tool", server_started_at_s=0.0, server_ended_at_s=10.0),
        call("stock", 6, 9, "gateway", kind="tool", server_started_at_s=6.0, server_ended_at_s=9.0),
    ]
    nested = Traces.of([run()], spans)
    stops = ServerBehaviour(name="stops", phases={}, other_requests="at_once")
    goes_on = ServerBehaviour(name="on", phases={}, other_requests="at_its_end")
    # The first in the table as well as a later one may hold others.
    for traces in (nested, Traces.of([run()], [call("before", 0, 1), *spans])):
        assert one(at(5, "C", traces, stops))[2:4] == (0.0, 0.0)
        assert one(at(5, "C", traces, goes_on))[2:4] == (1.0, 8.0)


def test_an_alternative_that_changes_the_path_of_a_run_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match="virtual time"):
        rule_of("A:reserve_first")


def test_every_alternative_of_the_catalogue_has_a_rule_or_is_refused() -> None:
    assert {name for name, entry in CATALOGUE.items() if "" in entry.on_traces} == set(CATALOGUE)


def test_many_deadlines_at_once_are_what_each_is_alone() -> None:
    deadlines = np.linspace(0.5, 12, 40)
    replay = Replay(TWO_CALLS, GOES_ON)
    for named in rules_of(None):
        together = replay.under(named.rule, deadlines)
        for place, deadline in enumerate(deadlines):
            alone = replay.under(named.rule, [deadline])
            assert together.busy_after_s[0, place] == alone.busy_after_s[0, 0]
            assert together.outcome[0, place] == alone.outcome[0, 0]


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_a_deadline_must_be_positive_and_finite(bad: float) -> None:
    with pytest.raises(ConfigurationError, match="positive and finite"):
        at(bad, "A")


@pytest.mark.parametrize("named", rules_of(None), ids=lambda named: named.alternative)
def test_what_a_run_would_have_done_after_it_was_cut_is_not_known(named: object) -> None:
    cut = Traces.of(
        [run(ended_at_s=float("nan"), observed_until_s=6.0, outcome="cut")], [call("a", 0, 2), call("b", 2, 6)]
    )
    outcomes = Replay(cut).under(named.rule, [5.0, 7.0])  # type: ignore[attr-defined]
    assert outcomes.known[0].tolist() == [True, False]


@pytest.mark.full
def test_a_frontier_of_1000_runs_200_deadlines_and_7_alternatives_takes_a_second_of_processor_time() -> None:
    generator = np.random.default_rng(1)
    runs, spans = [], []
    for number in range(1_000):
        at_s, trace_id = 0.0, str(number)
        for name in range(12):
            seconds = float(generator.lognormal())
            more = {"trace_id": trace_id, "first_byte_at_s": at_s + seconds / 3, "output_tokens": 50.0}
            spans.append(call(str(name), at_s, at_s + seconds, **more))
            at_s += seconds
        runs.append(run(trace_id, at_s, result_from_s=at_s / 2))
    replay = Replay(Traces.of(runs, spans))
    begun = time.process_time()
    for named in rules_of("unguarded,A,B,C,D,E,F"):
        replay.under(named.rule, np.geomspace(1, 60, 200))
    # It takes 0.4 to 0.8 s: processor time, which other programs lengthen only by what they take from caches.
    assert time.process_time() - begun < 1


def test_other_deadlines_are_answered_anew() -> None:
    replay = Replay(TWO_CALLS)
    rule = rule_of("unguarded").rule
    first, second = (replay.under(rule, [deadline_s]).busy_after_s[0, 0] for deadline_s in (5.0, 8.0))
    assert (first, second) == pytest.approx((5, 2))
    assert replay.under(rule, [5.0], horizon_factor=1.2).busy_after_s[0, 0] == pytest.approx(1)
