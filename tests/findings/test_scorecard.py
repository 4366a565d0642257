from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden import assert_golden
from made_up_findings import LETTERS, four_options
from sample_runs import concatenated

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import PerfMap, Scorecard, scorecard
from docmind_lab.findings.scorecard import COMPONENTS

# What A would be like if its deadline hardly held and much went on afterwards.
BAD_A = {"caller_overrun_s": 3.0, "busy_after_deadline_s": 5.0, "source_recall": 0.0, "outcome": "timed_out"}


def card_of(seeds: int = 24, perf_map: PerfMap | None = None, **of_arm) -> Scorecard:
    return scorecard(four_options(seeds, **of_arm), perf_map=perf_map, resamples=200)


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
        card = scorecard(each, resamples=200)
        numbers = [frame.to_csv(index=False, float_format="%.5g") for frame in (card.totals, card.simplex)]
        texts[name] = "\n".join([card.markdown(), *numbers])
        assert card.text().splitlines()[0] in card._repr_html_()
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_every_component_is_there_with_what_was_measured_its_score_and_its_weight() -> None:
    card = card_of(perf_map=PerfMap(weights=(1.0, 2.0, 1.0, 1.0)), D={"caller_overrun_s": 2.0})
    assert len(card.components) == len(COMPONENTS) * (len(LETTERS) + 1)
    for arm, frame in card.components.groupby("option"):
        assert frame["weight"].tolist() == pytest.approx([0.2, 0.4, 0.2, 0.2])
        perf = card.totals.set_index("option").loc[arm, "perf_measured"]
        assert (frame["score"] * frame["weight"]).sum() == pytest.approx(perf)
    d = card.components.query("alternative == 'stop_flag' and component == 'overrun'").iloc[0]
    assert (d["measured"], d["score"]) == (pytest.approx(0.5), pytest.approx(5.0))


def test_a_decision_that_changes_is_found_with_the_weights_under_which_it_does() -> None:
    runs = four_options(A=BAD_A)
    runs.loc[runs["alternative"].astype(str) == "cooperative", "answered_in_time"] = False
    card = scorecard(runs, resamples=200)
    # A scores 0 for answers and for sources; judged complexity and alignment still carry it, but no longer everywhere.
    simplex = card.simplex[card.simplex["perf"] == "measured"].set_index("alternative")
    assert 0 < simplex.loc["cooperative", "wins_share"] < 1
    assert simplex["wins_share"].sum() == pytest.approx(1.0, abs=0.02)
    measured = card.scored.set_index("option")
    scores = measured.assign(Perf=measured["perf_measured"])[["Complexity", "Perf", "Alignment"]]
    won = card.weight_map.query("perf == 'measured' and winner not in ('', 'A  cooperative')").iloc[0]
    at = won[["Complexity", "Perf", "Alignment"]].to_numpy(dtype=float)
    assert (scores @ (at / 100)).idxmax() == won["winner"]


def test_the_maps_are_all_combinations_and_the_map_in_use_decides_as_its_own_row_does() -> None:
    card = card_of(A=BAD_A)
    assert len(card.maps) == 3 * 6 * 6 * 3 * 56
    assert not card.maps.drop(columns="winner").duplicated().any()
    assert card.maps.filter(like="_weight").sum(axis=1).to_numpy() == pytest.approx(1.0)
    row = card.maps.query(
        "answered_zero == 0.25 and overrun_zero == 0.5 and late_work_zero == 2 and kept_zero == 0.5 and "
        "answered_weight == 0.2 and overrun_weight == 0.4 and late_work_weight == 0.4"
    ).iloc[0]
    zeros, weights = (tuple(row.filter(like=what).astype(float)) for what in ("_zero", "_weight"))
    same = card_of(perf_map=PerfMap(zeros, weights), A=BAD_A)
    assert same.decision["measured"] == row["winner"]


def test_the_weight_map_is_the_grid_and_agrees_with_the_totals_at_the_weights_of_the_record() -> None:
    card = card_of()
    assert len(card.weight_map) == 2 * 5151
    at = card.weight_map.query("Complexity == 40 and Perf == 30 and Alignment == 30").set_index("perf")["winner"]
    assert at.to_dict() == card.decision


def test_an_interval_is_that_of_the_seeds_and_has_no_width_where_nothing_varies() -> None:
    totals = card_of(D={"caller_overrun_s": 2.0}).totals.set_index("alternative")
    assert totals.loc["cooperative", "perf_low"] == totals.loc["cooperative", "perf_high"] == 10.0
    low, high = totals.loc["stop_flag", ["perf_low", "perf_high"]]
    # Half of 24 seeds are late: the mean score of overrun moves by 10 × √(1/4 / 24), a quarter of which is Perf's.
    assert high - low == pytest.approx(2 * 1.96 * 10 * np.sqrt(0.25 / 24) / 4, rel=0.2)


def test_runs_that_cannot_be_scored_are_refused_by_name() -> None:
    runs = four_options(6)
    with pytest.raises(ConfigurationError, match="table ADR-011 has no criterion that a study of deadlines measures"):
        scorecard(runs, table="ADR-011")
    twice = concatenated("runs", [runs, runs[runs["alternative"].astype(str) == "stop_flag"].assign(retries="sdk:0")])
    with pytest.raises(ConfigurationError, match=r"stop_flag was run in several ways \(D  stop flag, retries sdk:0"):
        scorecard(twice)
    alone = runs[runs["alternative"].astype(str).isin(["unguarded", "stop_flag", "hybrid"])]
    with pytest.raises(ConfigurationError, match="a decision needs two options of ADR-056"):
        scorecard(alone)
