from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden import assert_golden
from made_up_findings import four_options, late, left_alone, table
from sample_runs import concatenated, sample_run

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import Scorecard, scorecard
from docmind_lab.findings.decision_tables import winner_of

# What A would be like if its deadline hardly held and much went on afterwards.
BAD_A = {"caller_overrun_s": 3.0, "busy_after_deadline_s": 5.0, "source_recall": 0.0, "outcome": "timed_out"}


def card_of(seeds: int = 24, **of_arm) -> Scorecard:
    return scorecard(four_options(seeds, **of_arm))


def with_a_variant() -> pd.DataFrame:
    runs = four_options(6)
    naive = runs[runs["alternative"].astype(str) == "hard_timeout"].assign(alternative_options='{"naive": true}')
    return concatenated("runs", [runs, naive.assign(run_id=[f"n{n}" for n in range(6)])])


def test_every_scorecard_is_the_one_that_was_read() -> None:
    """Judged columns and measured Perf at the record's weights; measured Perf alone for what it does not score."""
    runs = {
        "the decision of the record stands": four_options(24),
        # Late in half of its runs by one decision timeout: 5 of 10 for overrun, and 10 for the rest.
        "D is late": four_options(24, D={"caller_overrun_s": 2.0}),
        "A hardly holds its deadline": four_options(24, A=BAD_A),
        "two conditions of few seeds": concatenated("runs", [four_options(6), four_options(6).assign(fault="hang")]),
        "a variant of an option has no total": with_a_variant(),
    }
    texts = {}
    for name, each in runs.items():
        card = scorecard(each)
        numbers = [frame.to_csv(index=False, float_format="%.5g") for frame in (card.totals, card.components)]
        texts[name] = "\n".join([card.markdown(), *numbers])
        assert card.text().splitlines()[0] in card._repr_html_()
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_a_tie_has_no_winner() -> None:
    assert winner_of(np.array([[2.0 + 1e-12, 2.0], [3.0, 2.0]])).tolist() == [-1, 0]


def test_an_interval_is_that_of_the_seeds_and_has_no_width_where_nothing_varies() -> None:
    totals = card_of(D={"caller_overrun_s": 2.0}).totals.set_index("alternative")
    assert totals.loc["cooperative", "perf_low"] == totals.loc["cooperative", "perf_high"] == 10.0
    low, high = totals.loc["stop_flag", ["perf_low", "perf_high"]]
    # Half of 24 seeds are late: the mean score of overrun moves by 10 × √(1/4 / 24), a quarter of which is Perf's.
    assert high - low == pytest.approx(2 * 1.96 * 10 * np.sqrt(0.25 / 24) / 4, rel=0.2)


def test_runs_that_cannot_be_scored_are_refused_by_name() -> None:
    runs = four_options(6)
    twice = concatenated("runs", [runs, runs[runs["alternative"].astype(str) == "stop_flag"].assign(retries="sdk:0")])
    with pytest.raises(ConfigurationError, match=r"stop_flag was run in several ways \(D  stop flag, retries sdk:0"):
        scorecard(twice)
    alone = runs[runs["alternative"].astype(str).isin(["unguarded", "stop_flag", "hybrid"])]
    with pytest.raises(ConfigurationError, match="a decision needs two options of ADR-056"):
        scorecard(alone)


# ---- what Perf is made of


def measured_of(runs):
    components = scorecard(runs).components
    return {
        arm: dict(zip(each["component"], each["measured"], strict=True)) for arm, each in components.groupby("option")
    }


def test_the_components_are_as_worked_out_by_hand() -> None:
    answered = {"recall_at_deadline": 1.0, "source_recall": 1.0}
    runs = table(
        sample_run("unguarded", 0, **answered),
        sample_run("unguarded", 1, **answered),
        left_alone(2, 5.0, recall_at_deadline=0.5),
        sample_run("cooperative", 0, **answered),
        late("cooperative", 1, source_recall=0.5),
        late("cooperative", 2, caller_overrun_s=0.3, busy_after_deadline_s=0.6, source_recall=0.5),
        *(late("stop_flag", seed) for seed in range(3)),
    )
    measured = measured_of(runs)
    assert measured["A  cooperative"] == pytest.approx(
        {"answered": 1 / 2, "overrun": 0.3 / 2 / 3, "late_work": 0.6 / 2 / 3, "kept": 2 / 2.5}
    )
    assert measured["control  unguarded"]["answered"] == 1.0
    assert measured["control  unguarded"]["overrun"] == pytest.approx(3.0 / 2 / 3)


def test_an_unfinished_run_counts_with_its_whole_horizon_and_a_share_of_nothing_with_nobody() -> None:
    measured = measured_of(table(left_alone(0, math.nan), late("cooperative", 0), late("hard_timeout", 0)))
    assert measured["control  unguarded"]["overrun"] == 4.0
    assert all(math.isnan(of_arm["answered"]) for of_arm in measured.values())


def test_what_is_not_known_of_one_arm_is_not_measured_for_any_and_leaves_its_weight_to_the_others() -> None:
    runs = four_options(4)
    runs.loc[runs["alternative"].astype(str) == "stop_flag", "busy_after_deadline_s"] = math.nan
    card = scorecard(runs)
    assert card.components.query("component == 'late_work'")["score"].isna().all()
    assert card.totals["perf_measured"].notna().all()
    assert "Not measured here, its weight left to the others: late_work." in card.sentences


def test_arms_that_met_other_questions_are_not_compared() -> None:
    runs = four_options(4)
    with pytest.raises(ConfigurationError, match=r"D stop flag has not met 1 of the 4 seeds"):
        scorecard(runs[~((runs["seed"] == 1) & (runs["alternative"].astype(str) == "stop_flag"))])
    with pytest.raises(ConfigurationError, match="twice"):
        scorecard(table(left_alone(0), late("cooperative", 0), late("cooperative", 0)))
    with pytest.raises(ConfigurationError, match="runs has no control"):
        scorecard(table(late("cooperative", 0)))


def test_several_conditions_count_alike_in_multiples_of_their_budgets() -> None:
    short = four_options(4, D={"caller_overrun_s": 1.0})
    long = short.assign(decision_timeout_s=20.0, horizon_s=100.0, caller_overrun_s=short["caller_overrun_s"] * 10)
    both = concatenated("runs", [short, long])
    assert measured_of(both)["D  stop flag"]["overrun"] == pytest.approx(measured_of(short)["D  stop flag"]["overrun"])
