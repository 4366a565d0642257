"""Policies for the time of model calls, and what they learn from (policies.md 2, 3, 4)."""

from __future__ import annotations

import math
import random

import pytest

from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.call_history import CallHistory, Durations, current_history, history_scope
from docmind_lab.core.catalogue import choice_to_paste, is_mistake, label_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.core.time_policies import (
    Admission,
    Anytime,
    Aware,
    CallTimeout,
    CircuitBreaker,
    Hedge,
    RetryBudget,
    TimePolicies,
    WindDown,
    policy_names,
)

# ---- names


@pytest.mark.parametrize(
    ("text", "policies"),
    [
        ("", TimePolicies()),
        ("none", TimePolicies()),
        ("hedge", TimePolicies(hedge=Hedge())),
        ("hedge:0.99", TimePolicies(hedge=Hedge(quantile=0.99))),
        ("hedge:2s", TimePolicies(hedge=Hedge(after_s=2.0))),
        ("adaptive_timeout", TimePolicies(call_timeout=CallTimeout())),
        ("naive_timeout:0.9", TimePolicies(call_timeout=CallTimeout(quantile=0.9, forgets_cuts=True))),
        ("call_timeout:5s", TimePolicies(call_timeout=CallTimeout(after_s=5.0))),
        ("retry_budget:0.2+circuit_breaker:3", TimePolicies(None, None, RetryBudget(0.2), CircuitBreaker(3))),
        ("aware:words+wind_down:0.3", TimePolicies(aware=Aware("words"), wind_down=WindDown(0.3))),
        ("anytime+admission", TimePolicies(anytime=Anytime(), admission=Admission())),
        ("admission:0.8", TimePolicies(admission=Admission(0.8))),
        ("circuit_breaker + hedge", TimePolicies(hedge=Hedge(), circuit_breaker=CircuitBreaker())),
    ],
)
def test_a_text_names_policies_and_comes_back_from_them(text: str, policies: TimePolicies) -> None:
    assert TimePolicies.parse(text) == policies
    assert TimePolicies.parse(policies.text) == policies


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hegde", "unknown policy 'hegde'; the policies are hedge, "),
        ("hedge:1.5", "policy 'hedge:1.5': give a number above 0 and below 1, such as 0.9"),
        ("hedge:-2s", "policy 'hedge:-2s': give seconds above 0, such as 2s"),
        ("call_timeout", "policy 'call_timeout': give seconds above 0"),
        ("adaptive_timeout+call_timeout:2s", "call_timeout takes the place of another one; name one of them"),
        ("aware:shouting", "policy 'aware:shouting': give one of seconds, words, thresholds, not 'shouting'"),
        ("anytime:3", "policy 'anytime:3': it takes no value; leave out '3'"),
        ("wind_down:25", "policy 'wind_down:25': give a number above 0 and below 1"),
        ("circuit_breaker:0", "policy 'circuit_breaker:0': give a number of failures of 1 or more"),
    ],
)
def test_a_text_that_names_no_policy_is_refused_with_the_remedy(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        TimePolicies.parse(text)
    assert complaint in str(refused.value)


def test_a_policy_is_part_of_the_name_of_an_alternative() -> None:
    plain, hedged, both = parse_alternatives("A,A+hedge:2s,A:equal+hedge+retry_budget")
    assert options_json(plain) == "{}"
    assert options_json(hedged) == '{"policies": "hedge:2s"}'
    assert options_json(both) == '{"allocation": "equal", "policies": "hedge+retry_budget"}'
    assert label_of("cooperative", options_json(hedged)) == "A  cooperative (hedge:2s)"
    (renamed,) = parse_alternatives("A+hedge:2s", retries=3)
    assert options_json(renamed) == '{"policies": "hedge:2s", "retries": 3}'


def test_a_policy_asks_for_an_alternative_that_propagates() -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_alternatives("B+hedge")
    assert "hard_timeout with policies hedge: its calls know of no deadline" in str(refused.value)
    (propagating,) = parse_alternatives("B:propagate+hedge")
    assert propagating.propagates


def test_what_a_study_chose_is_pasted_with_its_policies() -> None:
    options = '{"policies": "hedge:2s"}'
    assert choice_to_paste("settings", "cooperative", 20.0, options).split() == [
        "DOCMIND_AGENTS__DECISION_TIMEOUT=20",
        "DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true",
        "DOCMIND_AGENTS__TIME_POLICIES=hedge:2s",
    ]
    assert Settings(agents={"time_policies": "hedge:2s"}).agents.time_policies == "hedge:2s"  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="unknown policy"):
        Settings(agents={"time_policies": "faster"})  # type: ignore[arg-type]


def test_the_naive_timeout_is_never_recommended() -> None:
    assert is_mistake("cooperative", '{"policies": "naive_timeout"}')
    assert is_mistake("cooperative", '{"policies": "hedge+naive_timeout:0.9"}')
    assert not is_mistake("cooperative", '{"policies": "adaptive_timeout"}')


# ---- what is learned


def durations(*values: float, cut: tuple[float, ...] = ()) -> Durations:
    known = Durations()
    for value in values:
        known.add(value, was_cut=False)
    for value in cut:
        known.add(value, was_cut=True)
    return known


def test_without_cuts_a_quantile_is_that_of_the_durations() -> None:
    known = durations(*range(1, 11))
    assert [known.quantile(share) for share in (0.1, 0.5, 0.9, 0.95)] == [1, 5, 9, 10]


def test_a_cut_call_counts_as_one_that_went_on() -> None:
    # Of six, three ended by 3 s and one was cut at 2.5: of the two still known after that, one ended at 5 s.
    known = durations(1, 2, 3, 5, cut=(2.5, 6))
    # 1 - 5/6 * 4/5 = 1/3 by 2 s; by 3 s 1 - 2/3 * 2/3 = 5/9; by 5 s 1 - 4/9 * 1/2 = 7/9.
    assert known.quantile(1 / 3) == 2
    assert known.quantile(5 / 9) == 3
    assert known.quantile(7 / 9) == 5
    assert known.quantile(0.8) == math.inf, "nobody saw four fifths of the calls end"


def test_nothing_known_is_no_quantile() -> None:
    assert Durations().quantile(0.5) == math.inf


def test_the_oldest_calls_are_forgotten() -> None:
    known = Durations(window=3)
    for value in (100, 1, 2, 3):
        known.add(value, was_cut=False)
    assert len(known) == 3
    assert known.quantile(1.0) == 3


def timeouts_over(calls: int, policy: CallTimeout, seed: int) -> list[float]:
    """The timeouts of calls that follow each other, with latencies of a heavy tail; a cut call is seen as such."""
    draw, history, timeouts = random.Random(seed), CallHistory(), []
    for _ in range(calls):
        latency_s = draw.lognormvariate(0.0, 1.0)
        timeout_s = policy.timeout_s("synthesis", history)
        timeouts.append(timeout_s)
        history.note_attempt("synthesis", min(latency_s, timeout_s), was_cut=latency_s > timeout_s)
    return timeouts


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_timeout_that_learns_from_its_own_cuts_collapses_unless_they_are_censored(seed: int) -> None:
    """(policies.md 3.) Both take the 90th percentile of a lognormal law, which is 3.6 s, as their timeout."""
    honest = CallTimeout(quantile=0.9, margin=1.0)
    naive = CallTimeout(quantile=0.9, margin=1.0, forgets_cuts=True)
    late = slice(2_000, 4_000)
    learned, collapsed = (sorted(timeouts_over(4_000, each, seed)[late]) for each in (honest, naive))
    true_s = math.exp(1.2816)
    assert 0.7 * true_s < learned[1_000] < 1.6 * true_s
    assert collapsed[1_000] < 0.2 * true_s
    assert min(collapsed) == collapsed[0] >= naive.floor_s


def test_a_learned_timeout_has_a_floor_and_a_ceiling() -> None:
    policy, history = CallTimeout(margin=2.0, floor_s=1.0, ceiling_s=4.0, at_least=2), CallHistory()
    assert policy.timeout_s("router", history) == 4.0, "too little is known"
    for _ in range(2):
        history.note_attempt("router", 0.01, was_cut=False)
    assert policy.timeout_s("router", history) == 1.0
    for _ in range(20):
        history.note_attempt("router", 1.5, was_cut=False)
    assert policy.timeout_s("router", history) == 3.0
    for _ in range(80):
        history.note_attempt("router", 30.0, was_cut=False)
    assert policy.timeout_s("router", history) == 4.0
    assert policy.timeout_s("planner", history) == 4.0, "each role has its own"


def test_a_budget_of_retries_is_a_share_of_the_calls_of_all_roles() -> None:
    history = CallHistory()
    for _ in range(10):
        history.note_call()
    assert [history.take_retry(0.2, at_least=1) for _ in range(3)] == [True, True, False]
    for _ in range(5):
        history.note_call()
    assert history.take_retry(0.2, at_least=1)
    assert history.retries == 3
    assert CallHistory().take_retry(0.2, at_least=1), "the first failure of all may be tried again"


def test_a_circuit_opens_after_failures_in_a_row_and_lets_one_trial_through() -> None:
    history = CallHistory()
    assert not history.note_failure(2, 15.0)
    history.note_success()
    assert not history.note_failure(2, 15.0)
    assert history.note_failure(2, 15.0)
    assert not history.take_trial(14.9, 25.0)
    assert history.take_trial(15.0, 25.0)
    assert not history.take_trial(15.1, 25.1), "one trial is under way"
    history.note_success()
    assert history.take_trial(15.2, 25.2)
    assert history.take_trial(15.3, 25.3)


def test_runs_of_one_session_learn_from_each_other() -> None:
    assert current_history() is None
    with history_scope() as session:
        with history_scope() as run:
            assert run is session
        with history_scope(CallHistory()) as own:
            assert own is not session
    assert current_history() is None


def test_every_policy_has_a_name() -> None:
    values = {"call_timeout": ":2s"}
    for name in policy_names():
        assert TimePolicies.parse(name + values.get(name, "")).text == name + values.get(name, "")


# ---- admission


def test_the_likelihood_of_being_in_time_is_that_of_queries_beside_about_as_many() -> None:
    queries = CallHistory().queries
    assert queries.likely_in_time() is None, "nothing is known"
    for beside, was_in_time in [*[(0, True)] * 5, *[(6, False)] * 5, *[(7, True)] * 5]:
        queries.count += 1
        queries.end(beside, was_in_time=was_in_time)
    assert queries.likely_in_time() == 1.0
    assert [queries.begin() for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    # The nearest of those beside at most one more: five beside six, and four beside seven.
    assert queries.likely_in_time() == pytest.approx(4 / 9)
    for _ in range(14):
        queries.begin()
    assert queries.likely_in_time() == pytest.approx(5 / 9), "nobody knows of twenty: those beside the most count"
    for _ in range(20):
        queries.end(20, was_in_time=False)
    assert queries.count == 0
    assert queries.likely_in_time() == 1.0, "what was late beside twenty says nothing of a query alone"


def test_a_query_alone_is_admitted_again_after_all_were_refused() -> None:
    queries = CallHistory().queries
    for _ in range(9):
        queries.begin()
    for _ in range(9):
        queries.end(8, was_in_time=False)
    assert queries.likely_in_time() is None
