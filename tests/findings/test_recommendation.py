from __future__ import annotations

import html
import math

import numpy as np
import pandas as pd
import pytest
from made_up_findings import late, table
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.controls import FakeTimeout
from docmind_lab.analysis.findings import recommend
from docmind_lab.analysis.findings.recommendation import missing_runs
from docmind_lab.analysis.statistics.shares import share_interval
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.analysis.tables.records import RunRecord
from docmind_lab.core.errors import ConfigurationError


def arm_runs(budget_s: float, in_time: int, runs: int, alternative: str = "cooperative", **changes) -> list:
    shared = {"decision_timeout_s": budget_s, "horizon_s": 5 * budget_s} | changes
    answered = [sample_run(alternative, seed, **shared) for seed in range(in_time)]
    return answered + [late(alternative, seed, returned_at_s=budget_s, **shared) for seed in range(in_time, runs)]


def sweep(*cells: tuple[float, int, int], **changes) -> pd.DataFrame:
    return table(*(run for cell in cells for run in arm_runs(*cell, **changes)))


def test_the_smallest_budget_whose_lower_bound_reaches_the_target_is_recommended() -> None:
    found = recommend(sweep((10.0, 60, 80), (20.0, 80, 80), (30.0, 80, 80)))
    row = found.frame.iloc[0]
    assert (row["verdict"], row["decision_timeout_s"], row["runs_missing"]) == ("reached", 20.0, 0)
    assert found.settings == ("DOCMIND_AGENTS__DECISION_TIMEOUT=20 DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true")
    assert found.sentences[0].startswith("A cooperative: 20 s (80 of 80 in time, at least 95.4%)")


def test_73_runs_without_a_failure_are_enough_for_95_percent_and_72_are_not() -> None:
    assert recommend(sweep((10.0, 73, 73))).frame["verdict"].iloc[0] == "reached"
    found = recommend(sweep((10.0, 72, 72)))
    assert found.frame.iloc[0][["verdict", "runs_missing"]].tolist() == ["too few runs", 1]
    assert "1 more run would show 95% if the share held (with no failure 73 are needed)" in found.sentences[0]
    assert found.settings == ""
    assert "Nothing to choose: no arm was shown to reach the target." in found.text()


def test_the_first_failure_ends_the_search_however_well_a_smaller_budget_did() -> None:
    found = recommend(sweep((10.0, 80, 80), (20.0, 70, 80), (30.0, 80, 80)))
    assert found.frame["decision_timeout_s"].iloc[0] == 30.0
    assert found.steps["decision_timeout_s"].tolist() == [30.0, 20.0, 10.0]
    assert found.steps["tested"].tolist() == [True, True, False]
    assert found.steps["reached"].tolist() == [True, False, False]


def test_a_share_that_is_surely_below_is_told_apart_from_one_that_is_not_shown() -> None:
    surely = recommend(sweep((10.0, 40, 80)))
    assert surely.frame.iloc[0]["verdict"] == "below"
    assert "the share is really below 95%" in surely.sentences[0]
    perhaps = recommend(sweep((10.0, 19, 20)))
    assert perhaps.frame.iloc[0]["verdict"] == "not shown"
    assert math.isnan(perhaps.frame.iloc[0]["runs_missing"])
    assert "no number of runs shows 95% at a share of 95.0%" in perhaps.sentences[0]


def test_a_share_in_a_replay_is_a_lower_bound_so_it_is_never_surely_below() -> None:
    found = recommend(sweep((10.0, 40, 80), latency_profile="recorded"))
    assert found.frame.iloc[0]["verdict"] == "not known"
    assert "in a replay a lower bound" in found.sentences[0]
    assert found.sentences[-1].startswith("A replay: calls that the recording cut")


def test_it_names_the_assumption_of_independent_calls_and_how_to_see_the_range() -> None:
    sentence = recommend(sweep((10.0, 80, 80), latency_profile="typical")).sentences[-1]
    assert sentence.startswith("Assumes that the calls of a run are slow independently of each other")
    assert "sweep latency_profile over typical, typical?correlation=0.5 and typical?correlation=0.9" in sentence


@pytest.mark.parametrize(("shared", "said"), [(0.9, "is its session's"), (0.0, "not told from chance")])
def test_a_live_studys_own_calls_are_checked_for_slowness_that_they_share(shared: float, said: str) -> None:
    """Trust 6: where a provider is slow for minutes, the calls of a run are slow together."""
    rng = np.random.default_rng(3)
    runs = sweep((10.0, 80, 80), latency_profile="")
    calls = []
    for run_id in runs["run_id"]:
        of_run = rng.standard_normal()
        for number in range(4):
            score = math.sqrt(shared) * of_run + math.sqrt(1 - shared) * rng.standard_normal()
            calls.append(call(run_id, "planner", 0.0, float(np.exp(score)), f"1.0.{number}"))
    (sentence,) = recommend(runs, calls=to_frame("calls", calls)).sentences[-1:]
    assert said in sentence
    assert "measure at the hours that matter" in sentence
    few = recommend(runs, calls=to_frame("calls", calls[:8])).sentences[-1]
    assert few.startswith("Too few runs to tell whether the calls of a run are slow together.")


def test_over_several_correlations_it_states_the_range_of_the_advice() -> None:
    at = {
        "typical": ((10.0, 80, 80), (20.0, 80, 80)),
        "typical?correlation=0.5": ((10.0, 60, 80), (20.0, 80, 80)),
        "typical?correlation=0.9": ((10.0, 40, 80), (20.0, 60, 80)),
    }
    runs = pd.concat([sweep(*cells, latency_profile=name) for name, cells in at.items()], ignore_index=True)
    assert recommend(runs).sentences[-1] == (
        "A cooperative (typical) over the correlation of the calls of a run: 10 s at 0, 20 s at 0.5 and none of these "
        "at 0.9."
    )


@pytest.mark.parametrize(("successes", "runs", "target"), [(20, 20, 0.95), (98, 100, 0.95), (9, 10, 0.8)])
def test_the_missing_runs_are_the_fewest_that_do(successes: int, runs: int, target: float) -> None:
    needed = runs + int(missing_runs(successes, runs, target))
    # At the same share, which a whole number of answers has only in multiples of the runs there were.
    assert share_interval(successes * needed, runs * needed).low >= target
    assert recommend_reached(successes / runs, needed, target)
    assert not recommend_reached(successes / runs, needed - 1, target)


def recommend_reached(share: float, runs: int, target: float) -> bool:
    """Wilson's bound by its formula, for a share that is no whole number of runs."""
    z = 1.959963984540054
    centre = (share + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs)) / (1 + z * z / runs)
    return centre - half >= target - 1e-12


def test_what_it_costs_is_that_of_the_recommended_budget() -> None:
    runs = sweep((20.0, 80, 80), (30.0, 80, 80), alternative="hard_timeout")
    runs.loc[runs["decision_timeout_s"] == 20.0, ["busy_after_deadline_s", "tokens_after_deadline"]] = [1.5, 40.0]
    runs.loc[runs["decision_timeout_s"] == 20.0, "caller_overrun_s"] = 0.25
    found = recommend(runs)
    row = found.frame.iloc[0]
    assert (row["late_server_s"], row["late_tokens"]) == (1.5, 40.0)
    # 80 runs are enough for p90 and not for p95.
    assert (row["caller_overrun_name"], row["caller_overrun_s"]) == ("p90", 0.25)
    assert found.sentences[0].endswith(
        "the caller waited 250 ms too long at p90; after the deadline servers were busy for 1.50 s and 40 tokens a "
        "run; the price: nothing in the graph changes."
    )


def test_with_few_runs_the_worst_overrun_is_told_and_an_unfinished_run_has_none() -> None:
    runs = sweep((20.0, 10, 10))
    runs.loc[0, "caller_overrun_s"] = 0.4
    row = recommend(runs, target=0.6).frame.iloc[0]
    assert (row["caller_overrun_name"], row["caller_overrun_s"]) == ("worst", 0.4)
    runs.loc[0, "caller_overrun_s"] = math.nan
    found = recommend(runs, target=0.6)
    assert math.isinf(found.frame["caller_overrun_s"].iloc[0])
    assert "the caller was not back by the horizon at worst" in found.sentences[0]


def test_without_a_server_log_the_costs_are_not_known_and_not_nothing() -> None:
    runs = sweep((20.0, 80, 80)).assign(busy_after_deadline_s=math.nan, tokens_after_deadline=math.nan)
    assert "cannot be known without their log" in recommend(runs).sentences[0]


def test_of_two_that_reach_it_the_one_with_less_work_afterwards_is_chosen() -> None:
    runs = [
        *arm_runs(20.0, 80, 80, "hard_timeout", busy_after_deadline_s=1.0),
        *arm_runs(20.0, 80, 80, "native"),
        *arm_runs(20.0, 80, 80, "async_cancellation"),
        *arm_runs(20.0, 60, 80, "cooperative"),
    ]
    found = recommend(table(*runs))
    assert found.settings == "DOCMIND_AGENTS__DECISION_TIMEOUT=20"
    assert "Choose C async cancellation or F native, with 20 s" in found.text()


def test_each_condition_has_its_own_recommendation() -> None:
    runs = [*arm_runs(20.0, 80, 80), *arm_runs(20.0, 0, 80, fault="hang")]
    found = recommend(table(*runs))
    assert found.frame.set_index("fault")["verdict"].astype(str).to_dict() == {"none": "reached", "hang": "below"}
    assert any(line.startswith("A cooperative (fault hang): not shown") for line in found.sentences)
    assert found.settings == "", "there are two conditions, and no one choice for both"


def test_negative_controls_are_never_recommended() -> None:
    runs = [*arm_runs(20.0, 80, 80), *arm_runs(20.0, 80, 80, "unguarded"), *arm_runs(20.0, 80, 80, FakeTimeout.name)]
    assert recommend(table(*runs)).frame["alternative"].tolist() == ["cooperative"]
    for name in ("unguarded", FakeTimeout.name):
        with pytest.raises(ConfigurationError, match="no arm that enforces a deadline"):
            recommend(table(*arm_runs(20.0, 80, 80, name)))


@pytest.mark.parametrize("changes", [{"target": 0.0}, {"target": 1.0}, {"confidence": 1.0}])
def test_targets_and_confidences_that_cannot_be_had_are_refused(changes: dict[str, float]) -> None:
    (name,) = changes
    with pytest.raises(ConfigurationError, match=name):
        recommend(sweep((20.0, 80, 80)), **changes)


def test_text_markdown_and_html_hold_sentences_choice_and_settings() -> None:
    found = recommend(sweep((20.0, 80, 80)))
    for text in (found.text(), repr(found), found.markdown(), found._repr_html_()):
        text = html.unescape(text)
        assert all(line in text for line in (found.sentences[0], found.settings, "Choose A cooperative, with 20 s"))


def failing(seed: int, alternative: str = "cooperative", **changes) -> RunRecord:
    """A run that failed by itself soon after its start."""
    values = {
        "outcome": "failed",
        "stop_reason": "error",
        "answered_in_time": False,
        "returned_at_s": 0.1,
        "llm_calls": 0,
        "retrieval_calls": 0,
        "error_type": "ValueError",
        "error_node": "work",
        "deadline_propagation": alternative == "cooperative",
    }
    return sample_run(alternative, seed, **(values | changes))


def test_runs_that_failed_by_themselves_ask_for_no_longer_timeout() -> None:
    runs = [*arm_runs(10.0, 20, 20), *(failing(seed, decision_timeout_s=10.0) for seed in range(20, 40))]
    found = recommend(table(*runs))
    assert found.frame.iloc[0]["verdict"] == "out of reach"
    assert "20 of 40 failed (ValueError in node work); no timeout would have them answered." in found.sentences[0]
    assert "a longer decision timeout changes nothing" in found.sentences[0]
    assert "needed" not in found.sentences[0]


def test_few_failures_beside_answers_in_time_ask_for_no_longer_timeout() -> None:
    """At a share at the target or below it, which is not surely below."""
    for failed in (1, 2):
        runs = [*arm_runs(10.0, 19, 19), *(failing(seed, decision_timeout_s=10.0) for seed in range(19, 19 + failed))]
        (sentence, *_) = recommend(table(*runs)).sentences
        assert f"{failed} of {19 + failed} failed (ValueError in node work)" in sentence
        assert "Try a longer" not in sentence
        assert "needed" not in sentence


def test_runs_that_wait_for_a_person_are_named_with_their_node() -> None:
    waiting = {"outcome": "interrupted", "stop_reason": "interrupted", "error_type": "", "error_node": "ask"}
    runs = [*arm_runs(10.0, 30, 30), *(failing(seed, decision_timeout_s=10.0, **waiting) for seed in range(30, 40))]
    (sentence, *_) = recommend(table(*runs)).sentences
    assert "10 of 40 stopped in node ask to wait for a person; no timeout would have them answered." in sentence
    assert "a longer decision timeout changes nothing" in sentence


def test_where_some_ended_by_time_the_share_that_a_timeout_can_reach_is_said() -> None:
    runs = [*arm_runs(10.0, 40, 70), *(failing(seed, decision_timeout_s=10.0) for seed in range(70, 80))]
    found = recommend(table(*runs), target=0.7)
    assert "a longer decision timeout is needed. Beyond 10 s these runs know nothing" in found.sentences[0]
    assert "10 of 80 failed (ValueError in node work)" in found.sentences[0]
    assert "30 were not in time: a longer decision timeout can have at most 87.5% [78.5%, 93.1%]" in found.sentences[0]
    beyond = recommend(table(*runs), target=0.95)
    assert beyond.frame.iloc[0]["verdict"] == "out of reach"
    assert "95% is out of reach until fewer runs end so." in beyond.sentences[0]


def test_a_failure_under_a_deadline_that_it_looked_at_is_not_said_to_be_incurable() -> None:
    """A client that may not wait as long as a server asks gives up at once: a longer deadline may cure it."""
    gives_up = {"llm_calls": 3, "error_type": "RateLimitError", "decision_timeout_s": 10.0}
    runs = [*arm_runs(10.0, 20, 20), *(failing(seed, **gives_up) for seed in range(20, 40))]
    (sentence, *_) = recommend(table(*runs)).sentences
    assert "20 of 40 failed (RateLimitError in node work) under a deadline that they looked at" in sentence
    assert "is not known without the same runs of unguarded" in sentence
    assert "no timeout would" not in sentence
    assert "changes nothing" not in sentence
    control = [sample_run("unguarded", seed, decision_timeout_s=10.0, horizon_s=50.0) for seed in range(20, 40)]
    answered = recommend(table(*runs, *control)).sentences[0]
    assert "a longer decision timeout is needed" in answered
    also_failing = [failing(seed, "unguarded", **gives_up) for seed in range(20, 40)]
    assert "no timeout would have them answered" in recommend(table(*runs, *also_failing)).sentences[0]


def test_several_errors_are_counted() -> None:
    runs = [*arm_runs(10.0, 20, 20), *(failing(seed, decision_timeout_s=10.0) for seed in range(20, 35))]
    runs += [failing(seed, decision_timeout_s=10.0, error_type="KeyError", error_node="") for seed in range(35, 40)]
    assert "20 of 40 failed (ValueError in node work: 15 and KeyError: 5)" in recommend(table(*runs)).sentences[0]


def test_each_shorter_timeout_is_named_with_its_share_and_what_would_settle_it() -> None:
    cells = ((10.0, 80, 80), (20.0, 60, 80), (40.0, 79, 80), (80.0, 80, 80))
    found = recommend(sweep(*cells))
    assert found.frame["decision_timeout_s"].iloc[0] == 80.0
    more = int(missing_runs(79, 80, 0.95))
    assert (
        f"Shorter: 40 s: 79 of 80 in time [0.93, 1.00], about {more} more runs would settle it; "
        "20 s: 60 of 80 in time [0.65, 0.83], really below 95%; "
        "10 s: 80 of 80 in time [0.95, 1.00], not tested after the longer one that failed."
    ) in found.sentences[0]
    assert f'dl.sweep({{**design, "repeats": {80 + more}}})' in found.text()
    shell = found.words.how_to_settle(in_python=False)
    assert shell.endswith(f"repeats = {80 + more} in its file, then docmind-lab sweep STUDY.toml.")
    of_comparison = recommend(sweep((10.0, 72, 72)), is_sweep=False).words
    assert "dl.compare(runs=73, …)" in of_comparison.how_to_settle()
    assert "--runs 73" in of_comparison.how_to_settle(in_python=False)


def test_the_command_is_left_out_where_nothing_is_open() -> None:
    assert "To settle" not in recommend(sweep((10.0, 40, 80), (20.0, 80, 80))).text()
