"""How long recorded calls took, with what their client computed before them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from recorded_runs import recorded_call, recorded_run, recording_of

from docmind_lab.experiments.recordings import RecordedCall
from docmind_lab.experiments.recordings.timings import Waits, timings_of, timings_of_run


def waits_of(*calls, **changes):
    return {call.key: timing.wait_s for call, timing in timings_of_run(recorded_run(*calls, **changes))}


# Calls of a run with their instants, its return if that is not with the last of them, a call, and its wait.
RETRIEVAL = (recorded_call("llm/retrieval/3.0.1", 0.0, 1.0), recorded_call("llm/retrieval/3.1.1", 0.0, 1.5))
WAITS: dict[str, tuple[list[RecordedCall], dict[str, Any], tuple[str, int], float]] = {
    "what was computed before a call is a part of its wait": (
        [recorded_call("llm/router/0.0.1", 0.25, 1.0), recorded_call("llm/planner/1.0.1", 1.5, 2.0)],
        {},
        ("llm/planner/1.0.1", 1),
        1.0,
    ),
    "before the first call, too": ([recorded_call("llm/router/0.0.1", 0.25, 1.0)], {}, ("llm/router/0.0.1", 1), 1.0),
    # It began half a second after its own agent's call; the other's ended a moment before.
    "agents side by side do not wait for each other": (
        [*RETRIEVAL, recorded_call("retrieval/retrieval/3.0.1", 1.5, 2.0)],
        {"returned_at_s": None},
        ("retrieval/retrieval/3.0.1", 1),
        1.0,
    ),
    "who joins a fan-out waits for its last": (
        [*RETRIEVAL, recorded_call("llm/supervisor/3.0.1", 1.75, 2.0)],
        {},
        ("llm/supervisor/3.0.1", 1),
        0.5,
    ),
    "what was computed before a tool is played before the call after it": (
        [
            recorded_call("llm/model/0.0.1", 0.0, 1.0),
            recorded_call("tool/tools/1.0.1", 1.25, 2.0),
            recorded_call("llm/model/2.0.1", 2.5, 3.0),
        ],
        {},
        ("llm/model/2.0.1", 1),
        0.25 + 0.5 + 0.5,
    ),
    "the backoff before a retry is left to the client, which makes it again": (
        [
            recorded_call("llm/router/0.0.1", 0.0, 1.0, end="error", status=500),
            recorded_call("llm/router/0.0.1", 1.75, 2.0, attempt=2),
        ],
        {},
        ("llm/router/0.0.1", 2),
        0.25,
    ),
    "a second request after a good one is no retry": (
        [
            recorded_call("retrieval/retrieval/0.0.1", 0.0, 1.0),
            recorded_call("retrieval/retrieval/0.0.1", 1.75, 2.0, attempt=2),
        ],
        {},
        ("retrieval/retrieval/0.0.1", 2),
        1.0,
    ),
    "a return at a deadline with a call still open adds nothing to any call": (
        [recorded_call("llm/router/0.0.1", 0.0, 1.0), recorded_call("llm/planner/1.0.1", 1.0, 5.0)],
        {"returned_at_s": 2.0},
        ("llm/router/0.0.1", 1),
        1.0,
    ),
}


@pytest.mark.parametrize("case", WAITS)
def test_a_wait_is_what_a_client_computed_before_its_call_and_what_passed_until_it_was_over(case: str) -> None:
    calls, changes, key, wait_s = WAITS[case]
    assert waits_of(*calls, **changes)[key] == wait_s


def test_waits_add_up_to_the_return_when_calls_follow_each_other() -> None:
    calls = [recorded_call(f"llm/router/{n}.0.1", n + 0.1, n + 0.9) for n in range(4)]
    assert sum(waits_of(*calls, returned_at_s=4.25).values()) == pytest.approx(4.25)


@pytest.mark.parametrize(("propagates", "wait_s"), [(True, 2.0 - 1e-6), (False, 2.25)])
def test_an_answer_in_time_that_is_handed_on_late_is_still_in_time_where_the_deadline_cuts_calls(
    propagates: bool, wait_s: float
) -> None:
    last = recorded_call("llm/router/0.0.1", 0.0, 1.75)
    waits = waits_of(last, returned_at_s=2.25, decision_timeout_s=2.0, deadline_propagation=propagates)
    assert waits[last.key] == pytest.approx(wait_s, abs=1e-9)


def test_waits_are_the_kaplan_meier_estimate_of_calls_that_ended_and_calls_that_were_cut() -> None:
    run = recorded_run(
        recorded_call("llm/router/0.0.1", 0.0, 1.0),
        recorded_call("llm/router/1.0.1", 1.0, 3.0, end="cut"),
        recorded_call("llm/router/2.0.1", 3.0, 6.0),
        recorded_call("llm/router/3.0.1", 6.0, 6.1, end="error", status=500),
        returned_at_s=None,
    )
    found = timings_of(recording_of(run)).waits("llm", "router")
    # By hand: one of three ended at 1 s; of those that go on, the one still observed ended at 3 s.
    assert found == Waits((1.0, 3.0), (pytest.approx(1 / 3), pytest.approx(2 / 3)))


@pytest.mark.parametrize("ended_s", [[1.0], [0.0, 0.0], [1.0, 2.0, 3.0, 100.0]])
@pytest.mark.parametrize("cut_s", [[], [2.5], [0.5, 99.0, 200.0]])
def test_what_is_longer_than_was_observed_is_not_made_up(ended_s: list[float], cut_s: list[float]) -> None:
    waits = Waits.of(ended_s, cut_s)
    for level in (0.0, 0.3, 0.5, 0.999):
        assert min(ended_s) <= Waits.of(ended_s).at(level) <= max(ended_s)
        for passed_s in (0.0, 1.0, 2.9, 100.0, 150.0):
            wait_s = waits.beyond(passed_s, level)
            assert math.isinf(wait_s) or passed_s < wait_s <= max(ended_s)
            assert Waits.of(ended_s).beyond(passed_s, level) >= passed_s, "what was cut never ends before its cut"


def test_the_longest_call_was_cut_so_its_share_of_calls_has_no_known_length() -> None:
    waits = Waits.of([1.0, 2.0, 3.0], [4.0])
    assert waits.at(0.7) < 3.0
    assert math.isinf(waits.at(0.76))


def test_a_wait_that_would_stand_for_more_than_three_calls_is_left_out() -> None:
    # Of eleven calls ten were cut at 1 s: the last says little of how long those would have taken.
    assert Waits.of([2.0], [1.0] * 10).values_s == ()
    assert Waits.of([2.0], [1.0] * 2).values_s == (2.0,)


def test_nothing_is_known_of_a_role_that_runs_did_not_come_to() -> None:
    seen = recorded_call("llm/router/0.0.1", 0.0, 1.0)
    cut = recorded_call("llm/planner/1.0.1", 1.0, 2.0, end="cut")
    unseen = timings_of(recording_of(recorded_run(seen, cut))).waits("llm", "synthesis")
    assert unseen is not None
    assert math.isinf(unseen.at(0.0))
    # Runs that were seen whole have every role that there is; another alternative's is as those.
    assert timings_of(recording_of(recorded_run(seen))).waits("llm", "fallback") == Waits((1.0,), (1.0,))
