from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import sample_run, study_of

from docmind_lab.analysis.agreement import MEAN_ERROR, MISSES_WITHIN_S, SAME_OUTCOME, Agreement, agreement
from docmind_lab.analysis.study import Study
from docmind_lab.core.errors import ConfigurationError


def on(clock: str, *returns_s: float, alternative: str = "cooperative", **changes: object) -> Study:
    """A study on a clock: a run for each return, answered if by 2 s, else partial; NaN for no return at all."""
    runs = [
        sample_run(
            alternative,
            repeat,
            **{
                "clock": clock,
                "run_id": f"{clock}-{alternative}-{repeat}",
                "returned_at_s": at_s,
                "outcome": "unfinished" if math.isnan(at_s) else "answered" if at_s <= 2.0 else "partial",
                **changes,
            },
        )
        for repeat, at_s in enumerate(returns_s)
    ]
    return study_of(runs)


def compared(virtual_s: list[float], wall_s: list[float]) -> Agreement:
    return agreement(on("virtual", *virtual_s), on("wall", *wall_s))


def test_runs_are_paired_by_alternative_options_and_seed_whatever_their_order_and_names() -> None:
    levels = ("stop_flag", "cooperative", "unguarded")
    naive = sample_run("hard_timeout", 1, clock="virtual", alternative_options='{"naive": true}')
    virtual = [sample_run(level, repeat, clock="virtual") for level in levels for repeat in (2, 1)]
    wall = [sample_run(level, repeat, run_id=f"w{level}{repeat}") for level in reversed(levels) for repeat in (1, 2)]
    found = agreement(study_of([*virtual, naive]), study_of(wall))
    assert found.pairs["label"].unique().tolist() == ["control  unguarded", "A  cooperative", "D  stop flag"]
    assert found.pairs["seed"].tolist() == [1, 2] * 3
    assert found.unpaired == 1


def test_the_error_of_a_pair_is_relative_to_the_wall_clock_and_has_no_sign() -> None:
    found = compared([1.0, 1.5], [1.25, 1.2])
    assert found.pairs["later_s"].tolist() == pytest.approx([0.25, -0.3])
    assert found.pairs["error"].tolist() == pytest.approx([0.2, 0.25])
    assert found.mean_error == pytest.approx(0.225)


def test_a_miss_is_as_far_from_the_deadline_as_the_farther_of_its_two_returns() -> None:
    # The one that was cut is always at the deadline: its own distance would say nothing.
    found = compared([1.7, 1.96, 1.0], [2.001, 2.001, 1.0])
    assert found.same_outcome == pytest.approx(1 / 3)
    assert found.misses["from_deadline_s"].tolist() == pytest.approx([0.3, 0.04])
    assert found.farthest_miss_s == pytest.approx(0.3)


def test_without_a_miss_the_farthest_one_is_no_distance() -> None:
    found = compared([1.0], [1.0])
    assert (found.farthest_miss_s, len(found.misses)) == (0.0, 0)
    assert found.criteria()["met"].all()


def test_a_return_that_one_clock_never_saw_counts_with_the_horizon() -> None:
    found = compared([1.0, math.nan, math.nan], [math.nan, 1.0, math.nan])
    assert found.pairs["wall_returned_at_s"].tolist()[:2] == [10.0, 1.0]
    assert found.pairs["virtual_returned_at_s"].tolist()[:2] == [1.0, 10.0]
    assert found.farthest_miss_s == 8.0
    # Neither clock saw the third: they agree on the outcome, and there is no completion to compare.
    assert found.pairs["same_outcome"].tolist() == [False, False, True]
    assert found.pairs["error"].isna().tolist() == [False, False, True]


def test_each_criterion_has_its_own_target_and_none_hides_another() -> None:
    assert (MEAN_ERROR, SAME_OUTCOME, MISSES_WITHIN_S) == (0.01, 0.98, 0.25)
    late = compared([1.0] * 100, [1.02] * 100).criteria()["met"]
    assert late.tolist() == [False, True, True]
    many_close = compared([1.999] * 3 + [1.0] * 97, [2.001] * 3 + [1.0] * 97).criteria()["met"]
    assert many_close.tolist() == [True, False, True]
    one_far = compared([1.7] + [1.0] * 99, [2.001] + [1.0] * 99).criteria()["met"]
    assert one_far.tolist() == [True, True, False]


def test_an_error_that_cannot_be_known_meets_no_criterion() -> None:
    criteria = compared([math.nan], [math.nan]).criteria()["met"]
    assert criteria.tolist() == [False, True, True]


def test_the_table_by_alternative_names_the_worst_by_size_and_keeps_its_sign() -> None:
    found = compared([1.0, 1.5, 1.0], [1.1, 1.2, 1.0])
    (row,) = found.by_alternative().itertuples()
    assert row.Index == "A  cooperative"
    assert (row.pairs, row.misses) == (3, 0)
    assert row.later_worst_s == pytest.approx(-0.3)
    assert row.later_median_s == pytest.approx(0.0)


def test_it_shows_targets_and_verdicts_as_text_and_as_html() -> None:
    found = compared([1.0, 1.0], [1.02, 1.02])
    for shown in (repr(found), found._repr_html_()):
        assert "not met" in shown
        assert "cooperative" in shown
    assert "≤ 0.01" in repr(found)
    assert "≥ 0.98" in repr(found)
    assert "without a partner" not in repr(found)


def test_a_study_on_the_other_clock_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="virtual: its runs must be on the virtual clock, not wall"):
        agreement(on("wall", 1.0), on("wall", 1.0))
    with pytest.raises(ConfigurationError, match="wall: its runs must be on the wall clock, not none"):
        agreement(on("virtual", 1.0), on("wall"))


@pytest.mark.parametrize(
    ("column", "value"),
    [("decision_timeout_s", 3.0), ("latency_profile", "fast"), ("question_id", "q99"), ("retries", "none")],
)
def test_runs_under_other_conditions_are_not_paired(column: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{column} differs between the clocks"):
        agreement(on("virtual", 1.0), on("wall", 1.0, **{column: value}))


def test_a_run_that_is_there_twice_and_studies_without_a_common_run_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="wall: a run is there twice"):
        agreement(on("virtual", 1.0), on("wall", 1.0, 1.0, seed=0))
    with pytest.raises(ConfigurationError, match="share no run"):
        agreement(on("virtual", 1.0), on("wall", 1.0, alternative="hybrid"))


@pytest.mark.full
@given(st.lists(st.floats(0.1, 9.0), min_size=1, max_size=20))
def test_a_study_agrees_with_itself(returns_s: list[float]) -> None:
    found = compared(returns_s, returns_s)
    assert (found.mean_error, found.same_outcome, found.unpaired) == (0.0, 1.0, 0)
    assert found.criteria()["met"].all()


def test_agreement_by_outcome_counts_seeds_since_runs_of_one_seed_meet_the_same_latencies() -> None:
    def runs(clock: str, outcomes: list[tuple[str, int, str]]) -> Study:
        return study_of(
            [
                sample_run(level, repeat, clock=clock, run_id=f"{clock}-{level}-{repeat}", outcome=outcome)
                for level, repeat, outcome in outcomes
            ]
        )

    virtual = [("cooperative", 1, "answered"), ("hybrid", 1, "answered"), ("cooperative", 2, "answered")]
    wall = [("cooperative", 1, "answered"), ("hybrid", 1, "partial"), ("cooperative", 2, "answered")]
    cut = [("cooperative", 3, "partial")]
    found = agreement(runs("virtual", virtual + cut), runs("wall", wall + cut))
    table = found.by_outcome()
    assert table.loc["answered", ["pairs", "seeds", "same_seeds"]].tolist() == [3, 2, 0.5]
    assert table.loc["answered", "same_outcome"] == pytest.approx(2 / 3)
    assert table.loc["answered", "same_seeds_low"] < 0.5 < table.loc["answered", "same_seeds_high"]
    assert table.loc["partial", "same_seeds"] == 1.0
    assert "same_seeds_low" in repr(found)
