"""What each rule does to runs whose calls and steps are written by hand."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from golden import assert_golden

from docmind_lab.core.alternative_catalogue import CATALOGUE
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, PhaseBehaviour, ServerBehaviour
from docmind_lab.findings.what_if.outcomes import ENDINGS, Replay, RunOutcomes
from docmind_lab.tables.traces.rules import rule_of, rules_of
from docmind_lab.tables.traces.trace_tables import Generation, Span, TracedRun, Traces


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


def told(outcomes: RunOutcomes) -> str:
    """What became of each run of a trace."""
    names = ("outcome", "returned_at_s", "calls_after", "busy_after_s", "tokens_after", "known", "censored")
    rows = zip(*(getattr(outcomes, name)[:, 0] for name in names), strict=True)
    return "; ".join(
        f"{ENDINGS[outcome]} at {at_s:g} s; after the deadline {calls:g} calls, {busy_s:.4g} s, {tokens:g} tokens"
        f"{'' if known else '; not known'}{' at least' if censored else ''}"
        for outcome, at_s, calls, busy_s, tokens, known, censored in rows
    )


NEVER = float("nan")
CUT = {"ended_at_s": NEVER, "outcome": "cut"}
OPEN_CALL = call("a", 0, NEVER, outcome="open")
PLAIN = Traces.of([run()], [call("a", 0, 4), call("b", 5, 10)])
PARALLEL = Traces.of(
    [run()], [step("a", 0, 3), step("b", 0, 7), call("b1", 0, 7, "b"), step("c", 7, 10), call("c1", 7, 10, "c")]
)
BESIDE_HUNG = Traces.of(
    [run(**CUT)],
    [step("a", 0, NEVER), call("a1", 0, NEVER, "a", outcome="open"), step("b", 7, 9), call("b1", 7, 9, "b")],
)
RESULT_LATE = Traces.of([run(result_from_s=5.0)], [step("a", 0, 6), step("x", 0, 4), step("y", 4, 5), step("z", 6, 10)])
STREAM = Traces.of(
    [run()], [call("a", 0, 10, first_byte_at_s=2.0)], [Generation("r", "a", 2, 5, 3), Generation("r", "a", 5, 10, 5)]
)
HUNG = Traces.of([run(**CUT)], [OPEN_CALL])
RETRIED = Traces.of([run(retries="sdk:2")], [call("a", 0, 2, outcome="error"), call("b", 3, 10)])
FAILED = Traces.of([run(ended_at_s=4.0, outcome="failed", retries="sdk:2")], [call("a", 0, 2), call("b", 2, 4)])
NO_TIME_LEFT = Traces.of([run()], [call("a", 0, 4.998), call("b", 4.998, 10)])
ADAPTING = Traces.of([run(adapts=True)], [call("a", 0, 2), call("b", 3, 10)])
PEER = {"kind": "peer", "server_started_at_s": 3.0, "server_ended_at_s": 10.0}
ADAPTING_PEER = Traces.of(
    [run(adapts=True), run("plain")], [call("p", 3, 10, **PEER), call("p", 3, 10, trace_id="plain", **PEER)]
)
NESTED = [
    call("gateway", 0, 10, kind="tool", server_started_at_s=0.0, server_ended_at_s=10.0),
    call("stock", 6, 9, "gateway", kind="tool", server_started_at_s=6.0, server_ended_at_s=9.0),
]
GATEWAY = Traces.of([run()], NESTED)
LATER_GATEWAY = Traces.of([run()], [call("before", 0, 1), *NESTED])
CUT_EARLY = Traces.of([run(observed_until_s=6.0, **CUT)], [call("a", 0, 2), call("b", 2, 6)])
NO_STRETCHES = Traces.of([run()], [call("a", 0, 10, first_byte_at_s=0.0, output_tokens=1000.0)])


def behaves(phase: str, **values: object) -> ServerBehaviour:
    return ServerBehaviour(name="made-up", phases={phase: PhaseBehaviour(**values)})  # type: ignore[arg-type]


SLOW = behaves("generation", work_ends="at_once", delay_s=1.0)
LOOKS = behaves("generation", work_ends="at_once", delay_s=0.0, checks_every_s=0.8)
WRITES = behaves("mid_stream", work_ends="at_next_write")
STOPS_OTHERS = ServerBehaviour(name="stops", phases={}, other_requests="at_once")
OTHERS_GO_ON = ServerBehaviour(name="on", phases={}, other_requests="at_its_end")
EVERY = "unguarded fake_timeout A B B:drain B:naive B:propagate B:streamed C D E E:unpropagated F"
Scenario = tuple[Traces, str, tuple[float, ...], ServerBehaviour]
SCENARIOS: dict[str, Scenario] = {
    "each alternative does its own at a deadline within the second step": (TWO_CALLS, EVERY, (5,), STOPS),
    "a run that ends by its deadline is untouched": (TWO_CALLS, EVERY, (10,), STOPS),
    "what a run would have done after it was cut is not known": (CUT_EARLY, EVERY, (5, 7), STOPS),
    "tokens come evenly from the first byte on where nobody saw them come": (NO_STRETCHES, "A B", (5,), STOPS),
    "a stop flag ends a run with the step under way, and no later step begins": (TWO_CALLS, "D", (2,), STOPS),
    "a stop flag waits for the longest of parallel steps": (PARALLEL, "D", (1,), STOPS),
    "no step begins beside one that never ends": (BESIDE_HUNG, "D unguarded", (5,), STOPS),
    "a result of a step that never began is not returned": (RESULT_LATE, "D", (2,), STOPS),
    # In a pause the flag is looked at when the next call would begin; at 4 s it comes too late for the look.
    "calls without a step around them are steps, and the next does not begin": (PLAIN, "D", (2, 4.5, 4), STOPS),
    "a server that goes on finishes the call that was cut, and no other": (TWO_CALLS, "A", (5, 7.5), GOES_ON),
    "a server that notices late works until then": (TWO_CALLS, "C", (7.5,), SLOW),
    # It looks 0.8, 1.6 s … after the call came at 6 s; the first look after 7.5 is at 7.6.
    "a server that looks now and then works until it does": (TWO_CALLS, "C", (7.5,), LOOKS),
    "a server that notices by writing ends a stream with its next tokens": (STREAM, "A", (4,), WRITES),
    "what a trace did not observe is a lower bound": (HUNG, "B A unguarded", (5,), STOPS),
    "retries of its own take another path from the first error on": (RETRIED, "A C", (1, 5), STOPS),
    "a failure that no call shows ends what is known too": (FAILED, "A", (3, 6), STOPS),
    "a call with hardly any time left is refused where it knows the deadline": (
        NO_TIME_LEFT,
        "A C",
        (5,),
        GOES_ON,
    ),
    "an agent that adapts takes another path where it is told of the deadline": (ADAPTING, "A B C", (5,), STOPS),
    "the task of a peer that adapts outlives a request that was cut": (ADAPTING_PEER, "C", (5, 2), STOPS),
    "what a server asks of others ends with its own work": (GATEWAY, "C", (5,), STOPS_OTHERS),
    "what a server asks of others goes on where its own work does": (GATEWAY, "C", (5,), OTHERS_GO_ON),
    "a later call in the table may hold others too": (LATER_GATEWAY, "C", (5,), OTHERS_GO_ON),
    "and ends them as the first would": (LATER_GATEWAY, "C", (5,), STOPS_OTHERS),
}


def test_what_becomes_of_each_run() -> None:
    texts = {
        name: "\n".join(
            f"{each} at {s:g} s: {told(at(s, each, traces, behaviour))}" for each in names.split() for s in seconds
        )
        for name, (traces, names, seconds, behaviour) in SCENARIOS.items()
    }
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


@pytest.mark.parametrize(("name", "traces", "behaviour"), [("C", TWO_CALLS, GOES_ON), ("B", HUNG, STOPS)])
def test_another_horizon_or_deadline_is_another_answer(name: str, traces: Traces, behaviour: ServerBehaviour) -> None:
    replay, rule = Replay(traces, behaviour), rule_of(name).rule
    asked = [(7.5, 1.2), (7.5, 2.0), (5.0, 2.0), (5.0, 4.0), (7.5, 1.2)]
    answers = [told(replay.under(rule, [deadline_s], horizon_factor=factor)) for deadline_s, factor in asked]
    alone = [told(Replay(traces, behaviour).under(rule, [at_s], horizon_factor=factor)) for at_s, factor in asked]
    assert answers == alone
    assert len(set(answers)) >= 3
    assert answers[0].endswith("at least")


def test_every_alternative_of_the_catalogue_has_a_rule_or_is_refused() -> None:
    assert {name for name, entry in CATALOGUE.items() if "" in entry.on_traces} == set(CATALOGUE)


def test_many_deadlines_at_once_are_what_each_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # A few deadlines at a time.
    monkeypatch.setattr("docmind_lab.findings.what_if.outcomes._CELLS_AT_ONCE", 50)
    deadlines = np.linspace(0.5, 12, 40)
    replay = Replay(TWO_CALLS, GOES_ON)
    for named in rules_of(None):
        together = replay.under(named.rule, deadlines)
        for place, deadline in enumerate(deadlines):
            alone = replay.under(named.rule, [deadline])
            for each in fields(RunOutcomes):
                np.testing.assert_array_equal(getattr(together, each.name)[:, place], getattr(alone, each.name)[:, 0])


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_a_deadline_must_be_positive_and_finite(bad: float) -> None:
    with pytest.raises(ConfigurationError, match="positive and finite"):
        at(bad, "A")
