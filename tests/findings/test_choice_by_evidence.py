"""Which alternative is chosen, and by what evidence (trust 3, 9, 13, 14)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_runs import sample_run, study_of

from docmind_lab.analysis.findings.choice import FEWEST_PAIRS, Choice, choose
from docmind_lab.analysis.summary import summarise
from docmind_lab.analysis.tables.records import RunRecord
from docmind_lab.core.catalogue import is_mistake

A, B, C = "A  cooperative", "B  hard timeout", "C  async cancellation"


def runs_of(*records: RunRecord) -> pd.DataFrame:
    return study_of(list(records)).runs


def arm(alternative: str, runs: int = 40, **columns: Any) -> list[RunRecord]:
    """Runs of an arm; a column is a value, or a list with one for each repeat."""
    return [
        sample_run(
            alternative,
            repeat,
            run_id=f"{alternative}-{columns.get('alternative_options', '')}-{repeat}",
            **{name: value[repeat] if isinstance(value, list) else value for name, value in columns.items()},
        )
        for repeat in range(runs)
    ]


def chosen(*arms: list[RunRecord]) -> Choice:
    return choose(runs_of(*(record for records in arms for record in records)))


def test_two_seeds_of_forty_are_no_choice() -> None:
    """The table that said "Choose A or E": recall 0.59 against 0.54, by two seeds."""
    recall = [0.5] * 38
    found = chosen(
        arm("cooperative", source_recall=[1.0, 1.0, *recall]),
        arm("async_cancellation", source_recall=[0.0, 0.0, *recall]),
    )
    assert found.chosen == (A, C)
    (open_difference,) = found.undecided
    assert (open_difference.first, open_difference.criterion.name) == (A, "source_recall")
    assert open_difference.better_by.low < 0.02 < open_difference.better_by.high
    assert 10 < open_difference.more_runs < 400


def test_a_difference_in_most_seeds_is_evidence_and_names_what_it_rests_on() -> None:
    rng = np.random.default_rng(1)
    found = chosen(arm("cooperative"), arm("hard_timeout", busy_after_deadline_s=list(rng.exponential(5.0, 40))))
    assert found.chosen == (A,)
    beaten = found.beaten[B]
    assert (beaten.by, beaten.criterion.name) == (A, "busy_after_deadline_s")
    assert 0.05 < beaten.worse_by.low < beaten.worse_by.estimate < beaten.worse_by.high


def test_below_the_stated_minimum_nothing_is_told_apart() -> None:
    few = FEWEST_PAIRS - 1
    found = chosen(arm("cooperative", few), arm("hard_timeout", few, busy_after_deadline_s=9.0))
    assert found.too_few
    assert found.chosen == (A, B)
    enough = FEWEST_PAIRS
    found = chosen(
        arm("cooperative", enough), arm("hard_timeout", enough, busy_after_deadline_s=[9.0 + n for n in range(enough)])
    )
    assert not found.too_few
    assert found.chosen == (A,)


@pytest.mark.full
def test_as_many_more_runs_as_it_says_do_tell_apart() -> None:
    """The number of further runs settles a difference in most studies where it stays what it is."""
    rng = np.random.default_rng(2)
    told, counted = 0, 0
    for _ in range(60):
        differences = rng.normal(0.06, 0.2, 4000)
        first = chosen(
            arm("cooperative", source_recall=list(0.5 + differences[:40])), arm("async_cancellation", source_recall=0.5)
        )
        if not first.undecided or math.isinf(first.undecided[0].more_runs):
            continue
        runs = 40 + int(first.undecided[0].more_runs)
        # Only where the estimate is near the truth: the number is for a difference that stays what it is.
        if runs > 400 or abs(float(np.mean(differences[:40])) - 0.06) > 0.02:
            continue
        counted += 1
        again = chosen(
            arm("cooperative", runs, source_recall=list(0.5 + differences[:runs])),
            arm("async_cancellation", runs, source_recall=0.5),
        )
        told += not again.undecided
    assert counted >= 10
    assert told / counted >= 0.6


@pytest.mark.parametrize(
    ("alternative", "options"),
    [
        ("cooperative", '{"cap": "per_read"}'),
        ("hard_timeout", '{"naive": true}'),
        ("native", '{"per_step": true}'),
        ("fake_timeout", "{}"),
        ("unguarded", "{}"),
    ],
)
def test_a_documented_mistake_is_never_chosen(alternative: str, options: str) -> None:
    assert is_mistake(alternative, options)
    found = chosen(arm(alternative, alternative_options=options), arm("stop_flag", caller_overrun_s=0.6))
    assert found.chosen == ()


def test_variants_that_are_no_mistakes_may_be_chosen() -> None:
    assert not is_mistake("hard_timeout", '{"drain_on_timeout": true}')
    assert not is_mistake("cooperative", '{"cap": "total", "propagate": false}')


def test_runs_that_failed_weigh_and_an_arm_that_always_failed_is_out() -> None:
    """Under rate limits A failed 7 of 10 and was called alike with C."""
    failed = {"outcome": "failed", "answered_in_time": False}
    mostly = [sample_run("cooperative", n, **(failed if n % 10 < 7 else {})) for n in range(20)]
    found = chosen(mostly, arm("async_cancellation", 20))
    assert found.chosen == (C,)
    assert found.beaten[A].criterion.name == "answered_in_time"
    assert chosen(arm("cooperative", 20, **failed)).refused == {A: "failed"}


def test_failing_early_is_no_worse_than_timing_out_and_what_was_handed_over_counts() -> None:
    """Under rate limits B was chosen, which returned nothing and left work, over A, which failed with its documents."""
    unanswered = {"answered_in_time": False}
    failed = arm("cooperative", 14, outcome="failed", source_recall=[0.0, 0.0, *[0.8] * 12], **unanswered)
    left = [40.0 + n for n in range(14)]
    timed_out = arm("hard_timeout", 14, outcome="timed_out", source_recall=0.0, work_overrun_s=left, **unanswered)
    found = chosen(failed, timed_out)
    assert found.chosen == (A,)
    assert found.beaten[B].criterion.name == "given"
    empty = arm("cooperative", 14, outcome="failed", source_recall=0.0, **unanswered)
    assert chosen(empty, timed_out).chosen == (A,), "nobody was given anything, and only B left work"


def work_in_nine_of_fourteen(**columns: Any) -> Choice:
    left = [*(4.0 + n for n in range(9)), *[0.0] * 5]
    return chosen(
        arm("cooperative", 14, **columns),
        arm("async_cancellation", 14, **columns),
        arm("hard_timeout", 14, busy_after_deadline_s=left, **columns),
    )


@pytest.mark.parametrize("horizon_s", [10.0, 82.0])
def test_none_of_fourteen_runs_worse_and_nine_better_is_evidence(horizon_s: float) -> None:
    found = work_in_nine_of_fourteen(horizon_s=horizon_s)
    assert found.chosen == (A, C)
    by = found.beaten[B]
    assert (by.runs_worse, by.runs_better, by.worse_by.n) == (9, 0, 14)


def test_dominance_and_what_a_rare_event_could_cost_are_said() -> None:
    left = [*(4.0 + n for n in range(9)), *[0.0] * 5]
    study = study_of([*arm("cooperative", 14), *arm("hard_timeout", 14, busy_after_deadline_s=left)])
    text = " ".join(summarise(study.runs, study.manifest).advice)
    assert "Choose A cooperative: " in text
    assert "which was in none of 14 runs worse, in 9 better" in text
    assert "An event that no run showed, in up to 19% of runs, could still cost the better alternative up to" in text


def test_the_interval_of_a_share_stays_within_its_bounds() -> None:
    found = chosen(arm("cooperative", 14, outcome=[*["partial"] * 3, *["timed_out"] * 11]), arm("native", 14))
    assert all(each.better_by.high <= 1.0 for each in found.undecided)
    assert all(each.worse_by.high <= 1.0 for each in found.beaten.values())


def test_an_arm_that_is_only_seen_to_be_worse_is_not_named_first() -> None:
    left = [*[3.0] * 5, *[0.0] * 9]
    study = study_of([*arm("cooperative", 14), *arm("hard_timeout", 14, busy_after_deadline_s=left)])
    found = choose(study.runs)
    assert (found.chosen, found.preferred, found.seen_worse) == ((A, B), (A,), {B: (A, 5)})
    advice = summarise(study.runs, study.manifest).advice
    assert advice[0].startswith("Choose A cooperative: ")
    assert "Never better in these runs, and not ruled out by them: B hard timeout (worse than A cooperative in 5" in (
        " ".join(advice)
    )


def test_an_event_that_the_runs_may_have_missed_keeps_the_better_arm_in() -> None:
    """Three runs of a hundred cost 60 s; of 40 runs none may show it, and a second in every run looks worse."""
    found = chosen(arm("cooperative", busy_after_deadline_s=1.0, horizon_s=82.0), arm("hard_timeout", horizon_s=82.0))
    assert found.beaten == {}
    (open_difference,) = found.undecided
    assert open_difference.unseen > 1.8
    assert open_difference.more_runs > 20
    enough = chosen(
        arm("cooperative", 120, busy_after_deadline_s=1.0, horizon_s=82.0), arm("hard_timeout", 120, horizon_s=82.0)
    )
    assert enough.chosen == (B,), "so many runs would have shown it"


def test_work_that_goes_on_in_the_process_counts_as_work_at_a_server_does() -> None:
    """Trust 13: `work_overrun_s` was 1.5 s in every run, and C was recommended because no server was busy."""
    found = chosen(arm("cooperative"), arm("async_cancellation", work_overrun_s=[1.5 + n / 100 for n in range(40)]))
    assert found.chosen == (A,)
    assert found.beaten[C].criterion.name == "work_overrun_s"


def test_one_late_caller_of_forty_is_open_and_many_are_not_held() -> None:
    one = chosen(arm("cooperative", caller_overrun_s=[0.6, *[0.0] * 39]), arm("hard_timeout"))
    assert one.chosen == (A, B)
    assert [each.criterion.name for each in one.undecided] == ["overran"]
    many = chosen(arm("cooperative", caller_overrun_s=[*[0.6] * 8, *[0.0] * 32]), arm("hard_timeout"))
    assert many.refused == {A: "late"}


def test_arms_with_equal_runs_are_said_to_be_the_same_and_others_are_not() -> None:
    recall = [n / 40 for n in range(40)]
    found = chosen(arm("cooperative", source_recall=recall), arm("hybrid", source_recall=recall))
    assert found.same == ((A, "E  hybrid"),)
    outcomes = ["partial", *["answered"] * 39]
    found = chosen(arm("cooperative", source_recall=recall), arm("hybrid", source_recall=recall, outcome=outcomes))
    assert found.same == ()


def test_a_measure_that_is_not_known_decides_nothing() -> None:
    found = chosen(
        arm("cooperative", busy_after_deadline_s=math.nan), arm("hard_timeout", busy_after_deadline_s=math.nan)
    )
    assert found.chosen == (A, B)
    assert found.undecided == ()


def limits(**recalls: float) -> str:
    """What is said of the limits of runs with these source recalls, by alternative."""
    records = [sample_run(name, seed, source_recall=value) for name, value in recalls.items() for seed in range(12)]
    study = study_of(records)
    return next(line for line in summarise(study.runs, study.manifest).advice if line.startswith("Limits:"))


def test_source_recall_that_no_alternative_can_better_is_named_as_the_ceiling_of_retrieval() -> None:
    """Trust 8: a reader takes 0.70 for what a deadline costs."""
    assert "Source recall ends at 0.70: without any limit" in limits(unguarded=0.7, cooperative=0.6)
    assert "Source recall ends" not in limits(unguarded=0.7, cooperative=0.8), "somebody found more"
    assert "Source recall ends" not in limits(unguarded=1.0, cooperative=0.8), "all of it was found"
    assert "Source recall ends" not in limits(cooperative=0.7), "nobody had no limit"
