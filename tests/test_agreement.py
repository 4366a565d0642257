from __future__ import annotations

import math
from pathlib import Path

import pytest
from golden import assert_golden
from sample_runs import sample_run, study_of

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.agreement import MEAN_ERROR, MISSES_WITHIN_S, SAME_OUTCOME, Agreement, agreement
from docmind_lab.findings.study import Study


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


def test_each_criterion_has_its_own_target_and_none_hides_another() -> None:
    assert (MEAN_ERROR, SAME_OUTCOME, MISSES_WITHIN_S) == (0.01, 0.98, 0.25)
    late = compared([1.0] * 100, [1.02] * 100).criteria()["met"]
    assert late.tolist() == [False, True, True]
    many_close = compared([1.999] * 3 + [1.0] * 97, [2.001] * 3 + [1.0] * 97).criteria()["met"]
    assert many_close.tolist() == [True, False, True]
    one_far = compared([1.7] + [1.0] * 99, [2.001] + [1.0] * 99).criteria()["met"]
    assert one_far.tolist() == [True, True, False]
    itself = compared([0.1, 1.9, 2.0, 9.0], [0.1, 1.9, 2.0, 9.0])
    assert (itself.mean_error, itself.same_outcome, itself.unpaired) == (0.0, 1.0, 0)
    assert itself.criteria()["met"].all()
    unknown = compared([math.nan], [math.nan]).criteria()["met"]
    assert unknown.tolist() == [False, True, True]


REFUSED = {
    "virtual: its runs must be on the virtual clock, not wall": (on("wall", 1.0), on("wall", 1.0)),
    "wall: its runs must be on the wall clock, not none": (on("virtual", 1.0), on("wall")),
    "wall: a run is there twice": (on("virtual", 1.0), on("wall", 1.0, 1.0, seed=0)),
    "share no run": (on("virtual", 1.0), on("wall", 1.0, alternative="hybrid")),
    **{
        f"{column} differs between the clocks": (on("virtual", 1.0), on("wall", 1.0, **{column: value}))
        for column, value in (
            ("decision_timeout_s", 3.0),
            ("latency_profile", "fast"),
            ("question_id", "q99"),
            ("retries", "none"),
        )
    },
}


@pytest.mark.parametrize("named", REFUSED)
def test_studies_that_cannot_be_compared_are_refused_by_name(named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        agreement(*REFUSED[named])


def test_how_far_two_clocks_agree() -> None:
    """Relative errors, the farther return of a miss, the horizon for none at all."""
    found = {
        "earlier and later": compared([1.0, 1.5, 1.0], [1.25, 1.2, 1.0]),
        # The one that was cut is always at the deadline: its own distance would say nothing.
        "misses": compared([1.7, 1.96, 1.0], [2.001, 2.001, 1.0]),
        "no miss": compared([1.0], [1.0]),
        # Neither clock saw the third: they agree on the outcome, and there is no completion to compare.
        "never seen on one clock, and on both": compared([1.0, math.nan, math.nan], [math.nan, 1.0, math.nan]),
    }
    columns = ["seed", "virtual_returned_at_s", "wall_returned_at_s", "later_s", "error", "same_outcome"]
    texts = {
        name: f"{each.pairs[[*columns, 'from_deadline_s']].to_csv(index=False, float_format='%.4g')}\n{each.text()}"
        for name, each in found.items()
    }
    assert_golden(Path(__file__).with_suffix(".txt"), texts)
