"""The loop: phases, exits, the budget, what runs beside what. All in virtual time, with scripted services."""

from __future__ import annotations

from collections import Counter

import httpx
import openai
import pytest
from research_fakes import (
    CONTINUE,
    SATURATED,
    FakeSearching,
    fake_model,
    run,
    task,
    two_items,
)

from docmind_lab.systems.research.sources import Item
from docmind_lab.systems.research.tasks import ResearchLimits

NODE_MODES = pytest.mark.parametrize("mode", ["sync", "async"])


def failing(source: str, query: str) -> list[Item]:
    raise httpx.ConnectError("no way there")


def timed_out() -> openai.APITimeoutError:
    return openai.APITimeoutError(request=httpx.Request("POST", "http://127.0.0.1:1/v1"))  # type: ignore[arg-type]


def only(done):
    (completion,) = done.ledger.completions()
    return completion


# ---- 1: the phases


def test_the_first_query_is_not_judged_and_every_later_one_is():
    model = fake_model()
    done = run(model, limits=ResearchLimits(max_queries_per_source=4))
    assert (only(done).queries_executed, model.asked["judge"]) == (4, 3)
    model = fake_model(judge=lambda given: SATURATED)
    done = run(model, limits=ResearchLimits(max_queries_per_source=4))
    assert (only(done).exit_reason, only(done).queries_executed, model.asked["judge"]) == ("llm_saturated", 2, 1)


@NODE_MODES
def test_both_modes_do_the_same(mode):
    done = run(limits=ResearchLimits(max_queries_per_source=3), asked=task(2, ("one", "two")), mode=mode)
    assert done.reasons() == dict.fromkeys(["h1 one", "h1 two", "h2 one", "h2 two"], "max_queries_reached")
    assert done.state["messages"][-1].text == "Findings."
    # Of each hypothesis 3 queries of write, search and filter, of which two are judged; then the findings.
    assert done.ended_at_s == 2 * (3 * 3 + 2) + 1
    assert len(done.state["documents"]) == len(done.ledger.items()) == 2 * 2 * 3 * 2


# ---- 2 and 3: exits, and failed attempts


def test_a_source_that_always_fails_ends_by_its_number_of_queries_with_errors_noted():
    model = fake_model()
    done = run(model, FakeSearching(failing), limits=ResearchLimits(max_queries_per_source=3))
    completion = only(done)
    assert (completion.exit_reason, completion.queries_executed, completion.queries_failed) == (
        "max_queries_reached",
        3,
        3,
    )
    assert [attempt.error for attempt in done.ledger.attempts()] == ["ConnectError"] * 3
    assert (model.asked["filter"], done.state["messages"][-1].text[:21]) == (0, "0 results were kept o")


def test_the_model_may_call_a_source_saturated_after_a_failed_attempt_too():
    model = fake_model(judge=lambda given: SATURATED if given["history"][-1]["error"] else CONTINUE)
    done = run(model, FakeSearching(failing), limits=ResearchLimits(max_queries_per_source=2))
    assert only(done).exit_reason == "llm_saturated", "it comes before the number of queries, which is reached as well"


@pytest.mark.parametrize("find", [two_items, failing], ids=["a source that answers", "a source that always fails"])
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (ResearchLimits(max_queries_per_source=3), "max_queries_reached"),
        (ResearchLimits(max_queries_per_source=999, max_time_per_source_seconds=30), "time_limit_reached"),
        (ResearchLimits(max_queries_per_source=999, max_time_minutes=0.5), "research_budget_exhausted"),
    ],
)
@NODE_MODES
def test_every_limit_ends_a_loop_whose_model_never_says_saturated(limits, reason, find, mode):
    done = run(fake_model(), FakeSearching(find), limits=limits, mode=mode)
    assert only(done).exit_reason == reason
    assert done.ended_at_s < 40


def test_the_time_of_a_source_cuts_nothing():
    done = run(limits=ResearchLimits(max_time_per_source_seconds=5.5))
    # The second query was under way at 5.5 s; it ends at 7 s with its judgement.
    assert (only(done).exit_reason, only(done).ended_at_s, only(done).queries_executed) == ("time_limit_reached", 7, 2)


# ---- 6: malformed decisions


@pytest.mark.parametrize("role", ["write", "judge"])
@NODE_MODES
def test_a_malformed_decision_has_one_more_chance_and_then_ends_the_source(role, mode):
    model = fake_model(**{role: lambda given: '{"decision": "SATURATED"}'})
    done = run(model, mode=mode)
    assert only(done).exit_reason == "query_generation_error"
    assert only(done).saturation_decision is None
    assert model.asked["query_writer" if role == "write" else "judge"] == 2


def test_a_decision_that_is_well_formed_at_the_second_attempt_counts():
    replies = iter(["SATURATED", SATURATED])
    model = fake_model(judge=lambda given: next(replies))
    assert only(run(model)).exit_reason == "llm_saturated"


def test_without_a_usable_word_of_the_filter_an_attempt_fails_and_nothing_is_accepted():
    model = fake_model(filter=lambda given: "all of them")
    done = run(model, limits=ResearchLimits(max_queries_per_source=2))
    assert (only(done).queries_failed, only(done).results_found, done.ledger.items()) == (2, 4, ())


# ---- 4: the other reasons


def test_an_empty_suggestion_ends_a_source():
    model = fake_model(write=lambda given: '{"query": "", "reasoning": "none left"}')
    done = run(model)
    assert (only(done).exit_reason, only(done).queries_executed) == ("empty_query_suggestion", 0)


def test_a_query_that_was_asked_before_is_not_asked_again_and_ends_the_source():
    model = fake_model(write=lambda given: '{"query": "always the same words", "reasoning": "so"}')
    searching = FakeSearching(two_items)
    done = run(model, searching, asked=task(2, ("one", "two")))
    assert Counter(done.reasons().values()) == {"duplicate_query_skipped": 4}
    assert sorted(searching.asked) == [("one", "always the same words"), ("two", "always the same words")]


def test_hypotheses_side_by_side_share_what_was_asked():
    model = fake_model(write=lambda given: '{"query": "always the same words", "reasoning": "so"}')
    searching = FakeSearching(two_items)
    done = run(model, searching, asked=task(3, ("one",)), limits=ResearchLimits(hypotheses_at_once=3))
    assert len(done.ledger.completions()) == 3
    assert searching.asked == [("one", "always the same words")]


def test_an_unknown_source_is_said_to_be_one_and_the_others_go_on():
    done = run(asked=task(1, ("nowhere", "one")), limits=ResearchLimits(max_queries_per_source=1))
    assert done.reasons() == {"h1 nowhere": "unknown_source", "h1 one": "max_queries_reached"}


# ---- 7 and 8: the budget


@pytest.mark.parametrize(
    ("slow", "budget_s", "ended_at_s", "kept", "unfiltered"),
    [
        ("query_writer", 5, 10.0, 0, 0),
        ("search", 5, 11.0, 2, 2),
        ("filter", 5, 12.0, 2, 0),
        ("judge", 8, 6 + 10.0, 4, 0),
    ],
)
@NODE_MODES
def test_a_budget_that_ends_mid_query_lets_the_call_under_way_end_keeps_its_results_and_starts_nothing(
    slow, budget_s, ended_at_s, kept, unfiltered, mode
):
    model, searching = fake_model(seconds={slow: 10.0}), FakeSearching(two_items)
    if slow == "search":
        searching.seconds = 10.0
    done = run(model, searching, limits=ResearchLimits(max_time_minutes=budget_s / 60), mode=mode)
    completion = only(done)
    assert completion.exit_reason == "research_budget_exhausted"
    assert done.ended_at_s == ended_at_s
    assert done.ended_at_s - budget_s <= 10.0, "no later than the longest call in flight"
    assert (len(done.ledger.items()), completion.results_unfiltered) == (kept, unfiltered)
    assert (model.asked["synthesis"], done.state["stop_reason"]) == (0, "budget_refused")


def test_what_no_filter_saw_is_marked():
    searching = FakeSearching(two_items, seconds=10.0)
    done = run(fake_model(), searching, limits=ResearchLimits(max_time_minutes=5 / 60))
    assert [document["metadata"]["filtered"] for document in done.state["documents"]] == [False, False]


def test_no_queries_allowed_means_no_call_and_one_completion():
    model, searching = fake_model(), FakeSearching(two_items)
    done = run(model, searching, limits=ResearchLimits(max_queries_per_source={"one": 0}))
    assert (only(done).exit_reason, only(done).queries_executed) == ("max_queries_reached", 0)
    assert (sum(model.asked.values()), searching.asked) == (0, [])


def test_a_budget_that_is_spent_at_the_start_means_an_empty_report_and_no_model_call():
    model, searching = fake_model(), FakeSearching(two_items)
    done = run(model, searching, limits=ResearchLimits(max_time_minutes=0))
    assert (done.ledger.completions(), sum(model.asked.values()), searching.asked) == ((), 0, [])
    assert (len(done.state["documents"]), done.state["stop_reason"]) == (0, "budget_refused")


def test_a_deadline_in_the_state_is_a_budget_too_and_the_earlier_one_counts():
    done = run(deadline_after_s=5.5, limits=ResearchLimits(max_queries_per_source=99))
    assert (only(done).exit_reason, done.state["stop_reason"]) == ("research_budget_exhausted", "deadline")
    done = run(deadline_after_s=500, limits=ResearchLimits(max_queries_per_source=99, max_time_minutes=0.1))
    assert (only(done).exit_reason, done.state["stop_reason"]) == ("research_budget_exhausted", "budget_refused")


# ---- 9: sources beside each other


@NODE_MODES
def test_sources_of_a_hypothesis_run_side_by_side_and_queries_within_one_in_sequence(mode):
    done = run(asked=task(1, ("one", "two")), limits=ResearchLimits(max_queries_per_source=2), mode=mode)
    for name in ("one", "two"):
        spans = [(a.started_at_s, a.ended_at_s) for a in done.ledger.attempts() if a.source == name]
        assert spans == [(1, 3), (4, 6)], name


@NODE_MODES
def test_no_more_sources_run_at_once_than_allowed(mode):
    for at_once, ended_at_s in ((2, 3 + 1), (1, 2 * 3 + 1)):
        limits = ResearchLimits(max_queries_per_source=1, max_concurrent_sources=at_once)
        done = run(asked=task(1, ("one", "two")), limits=limits, mode=mode)
        assert (len(done.ledger.completions()), done.ended_at_s) == (2, ended_at_s)


@NODE_MODES
def test_an_error_or_exit_of_one_source_never_stops_another(mode):
    def find(source, query):
        if source == "one":
            raise ValueError("a defect of this source")
        return two_items(source, query)

    done = run(
        fake_model(),
        FakeSearching(find),
        asked=task(1, ("one", "two")),
        limits=ResearchLimits(max_queries_per_source=3),
        mode=mode,
    )
    assert done.reasons() == {"h1 one": "source_error", "h1 two": "max_queries_reached"}
    assert (done.error, len(done.ledger.items())) == (None, 6)


# ---- 11: items


def test_items_without_address_and_id_are_kept_and_found_again_by_their_content():
    def find(source, query):
        return [Item("A remark that comes back", source=source), Item(f"A remark on {query}", source=source)]

    done = run(searching=FakeSearching(find), limits=ResearchLimits(max_queries_per_source=3))
    assert len(done.ledger.items()) == 4
    assert [len(attempt.new) for attempt in done.ledger.attempts()] == [2, 1, 1]
    assert only(done).results_accepted == 4


# ---- 13: no limit of a task


def test_a_task_that_needs_long_survives():
    model = fake_model(seconds=dict.fromkeys(("query_writer", "filter", "judge"), 25.0))
    limits = ResearchLimits(max_queries_per_source=3)
    done = run(model, asked=task(12, ("one", "two")), limits=limits)
    assert done.ended_at_s > 30 * 60, "longer than the task timeout that the architecture did away with"
    assert set(done.reasons().values()) == {"max_queries_reached"}
    assert done.state["messages"][-1].text == "Findings."


# ---- 14: retries


@pytest.mark.parametrize(
    ("limits", "attempts", "ended_at_s"),
    [
        # Three timeouts, and the waits of half a second and of one between them.
        (ResearchLimits(llm_retries=2), 3, 3 * 180 + 1.5),
        (ResearchLimits(llm_retries=9, max_time_minutes=5), 2, 2 * 180 + 0.5),
    ],
    ids=["at most so often", "never past the budget"],
)
def test_a_model_call_that_times_out_is_tried_again(limits, attempts, ended_at_s):
    def hang(given):
        raise timed_out()

    model = fake_model(write=hang, seconds={"query_writer": 180.0})
    done = run(model, limits=limits)
    assert (only(done).exit_reason, model.asked["query_writer"]) == ("query_generation_error", attempts)
    assert done.ended_at_s == ended_at_s


def test_a_malformed_decision_gets_no_second_chance_past_the_budget():
    model = fake_model(write=lambda given: "no JSON", seconds={"query_writer": 30.0})
    done = run(model, limits=ResearchLimits(max_time_minutes=0.25))
    assert (model.asked["query_writer"], only(done).exit_reason) == (1, "query_generation_error")
