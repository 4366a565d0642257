from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_findings import ended
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, COMPETING, AnswerTimes, answer_times
from docmind_lab.statistics.completion_curves import aalen_johansen, completion_curve

# The 6-mercaptopurine arm of Freireich et al. (1963), as in Klein and Moeschberger (2003), table 1.2: weeks.
RELAPSES = (6, 6, 6, 7, 10, 13, 16, 22, 23)
STILL_WELL = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
LEUKAEMIA = AnswerTimes(np.array(RELAPSES + STILL_WELL, dtype=float), np.array([ANSWERED] * 9 + [CENSORED] * 12))

# Worked by hand: 6 runs at risk, an answer; 5, a failure; 4, an answer; 3, cut; 2, an answer; 1, cut.
# Open before: 1, 5/6, 2/3, 1/2, 1/2, 1/4. Share: 1/6, 1/6, 1/6 + 2/3 × 1/4, same, 1/3 + 1/2 × 1/2, same.
WORKED = AnswerTimes(np.arange(1.0, 7.0), np.array([ANSWERED, COMPETING, ANSWERED, CENSORED, ANSWERED, CENSORED]))

TIMES = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from([ANSWERED, COMPETING, CENSORED])), min_size=2, max_size=30
)


def times_of(pairs):
    return AnswerTimes(np.array([at for at, _ in pairs], dtype=float), np.array([what for _, what in pairs]))


def test_the_incidence_of_a_small_example_is_that_worked_by_hand():
    found = aalen_johansen(WORKED)
    assert found.open_before == pytest.approx([1, 5 / 6, 2 / 3, 1 / 2, 1 / 2, 1 / 4])
    assert found.share == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3, 7 / 12, 7 / 12])
    assert found.at_risk.tolist() == [6, 5, 4, 3, 2, 1]


def test_its_variance_is_that_of_the_formula_worked_by_hand():
    # Marubini and Valsecchi's eq. 10.12 at the third instant, share 1/3, one term for each instant so far.
    first = (1 / 6) ** 2 * 1 / 30 + 5 / 216 - 2 * (1 / 6) * 1 / 36
    second = (1 / 6) ** 2 * 1 / 20
    third = (2 / 3) ** 2 * 3 / 64
    assert aalen_johansen(WORKED).variances()[2] == pytest.approx(first + second + third)


def test_without_censoring_the_variance_is_that_of_a_share():
    ends = AnswerTimes(np.arange(1.0, 9.0), np.array([ANSWERED, COMPETING] * 4))
    found = aalen_johansen(ends)
    assert found.share == pytest.approx(np.array([1, 1, 2, 2, 3, 3, 4, 4]) / 8)
    assert found.variances() == pytest.approx(found.share * (1 - found.share) / 8)


def test_without_competing_ends_it_is_the_textbooks_kaplan_meier():
    """Klein and Moeschberger (2003), table 4.1A: survival and its standard error, printed to four places."""
    found = aalen_johansen(LEUKAEMIA)
    rows = [int(np.flatnonzero(found.at_s == week)[0]) for week in (6, 7, 10, 13, 16, 22, 23)]
    survival = (0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482)
    errors = (0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346)
    assert 1 - found.share[rows] == pytest.approx(survival, abs=6e-5)
    assert np.sqrt(found.variances()[rows]) == pytest.approx(errors, abs=6e-5)


def kaplan_meier(times: AnswerTimes) -> pd.DataFrame:
    """The curve by `scipy.stats.ecdf` of censored data, with log-log bands, where no end competes with an answer."""
    sample = stats.CensoredData(uncensored=times.at_s[times.what == ANSWERED], right=times.at_s[times.what == CENSORED])
    survival = stats.ecdf(sample).sf
    with warnings.catch_warnings():
        # scipy says so where its interval is undefined, and gives a NaN.
        warnings.simplefilter("ignore", RuntimeWarning)
        band = survival.confidence_interval(0.95, method="log-log")
    values = {"at_s": survival.quantiles, "share": 1.0 - survival.probabilities}
    return pd.DataFrame(values | {"low": 1.0 - band.high.probabilities, "high": 1.0 - band.low.probabilities})


@settings(max_examples=60)
@given(TIMES)
def test_without_competing_ends_curve_and_band_are_those_of_scipy(pairs):
    times = times_of([(at, what if what != COMPETING else CENSORED) for at, what in pairs])
    curve = completion_curve(times, 100.0).iloc[1:]
    curve = curve[curve["events"] > 0].set_index("at_s")
    by_scipy = kaplan_meier(times).set_index("at_s").loc[curve.index]
    assert curve["share"].to_numpy() == pytest.approx(by_scipy["share"].to_numpy())
    defined = (by_scipy["share"] > 1e-9) & (by_scipy["share"] < 1 - 1e-9)
    for side in ("low", "high"):
        assert curve.loc[defined, side].to_numpy() == pytest.approx(by_scipy.loc[defined, side].to_numpy())


@settings(max_examples=60)
@given(TIMES)
def test_a_band_holds_its_curve_within_0_and_1_and_never_claims_certainty(pairs):
    curve = completion_curve(times_of(pairs), 100.0)
    assert (curve["low"] <= curve["share"] + 1e-12).all()
    assert (curve["share"] <= curve["high"] + 1e-12).all()
    assert curve["low"].min() >= 0
    assert curve["high"].max() <= 1 + 1e-12
    assert (curve["high"] - curve["low"] > 0.05).all()
    assert curve["share"].is_monotonic_increasing


# ---- from runs


def test_timed_out_runs_are_censored_and_partial_and_failed_ones_compete():
    times = answer_times(
        ended(("answered", 3.0), ("partial", 4.0), ("failed", 5.0), ("timed_out", 12.0), ("unfinished", math.nan))
    )
    assert times.at_s.tolist() == [3.0, 4.0, 5.0, 12.0, 50.0]
    assert times.what.tolist() == [ANSWERED, COMPETING, COMPETING, CENSORED, CENSORED]


def test_a_run_that_gave_up_early_had_no_answer_by_the_deadline():
    early = ended(*[("timed_out", 1.0)] * 5, *[("answered", 8.0)] * 5)
    curve = completion_curve(answer_times(early), 50.0)
    assert curve["share"].iloc[-1] == pytest.approx(0.5)
    assert curve["at_s"].iloc[-1] == 10.0


ENDS = st.lists(
    st.tuples(
        st.sampled_from(["answered", "partial", "failed", "timed_out", "unfinished"]), st.integers(1, 30).map(float)
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=60)
@given(ENDS)
def test_the_share_at_the_deadline_is_that_of_the_runs_answered_in_time(ends):
    runs = ended(*ends)
    curve = completion_curve(answer_times(runs), 50.0)
    by_deadline = curve[curve["at_s"] <= 10.0]["share"].iloc[-1]
    assert by_deadline == pytest.approx(runs["answered_in_time"].mean())


def test_a_curve_says_how_many_runs_are_at_risk_and_how_many_are_answered():
    runs = ended(("answered", 3.0), ("answered", 3.0), ("partial", 4.0), ("answered", 5.0))
    curve = completion_curve(answer_times(runs), 50.0)
    assert curve["at_s"].tolist() == [0.0, 3.0, 5.0, 50.0]
    assert curve["at_risk"].tolist() == [4, 4, 1, 0]
    assert curve["events"].tolist() == [0, 2, 1, 0]


def test_an_ended_run_without_an_instant_is_refused():
    runs = ended(("answered", 3.0), ("failed", 4.0)).assign(returned_at_s=[3.0, math.nan])
    with pytest.raises(ConfigurationError, match="returned_at_s"):
        answer_times(runs)
