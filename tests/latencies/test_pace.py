"""How latencies grow with tokens, where long answers are the ones that timeouts cut."""

import numpy as np
import pytest

from docmind_lab.statistics.latency.fitting import fit_pace

FIRST_S, EACH_S, SPREAD = 0.8, 0.02, 0.15


def calls(cut, seed=5, rows=3000):
    rng = np.random.default_rng(seed)
    tokens = rng.integers(20, 400, rows).astype("float64")
    whole_s = (FIRST_S + EACH_S * tokens) * rng.lognormal(0.0, SPREAD, rows)
    limit_s = np.quantile(whole_s, 1 - cut)
    late = whole_s > limit_s
    return whole_s[~late], tokens[~late], np.minimum(whole_s, limit_s)[late], tokens[late]


@pytest.mark.parametrize("cut", [0.0, 0.2, 0.35])
def test_the_pace_is_found_though_the_tokens_of_cut_calls_are_not_known(cut):
    whole_s, tokens, cut_s, _ = calls(cut)
    found = fit_pace(whole_s, tokens, cut_s)
    assert found.first_s == pytest.approx(FIRST_S, rel=0.06)
    # With a third cut no call with the most tokens is complete, and its count is out of reach: 4.5 % too slow.
    assert found.token_s == pytest.approx(EACH_S, rel=0.03 if cut < 0.3 else 0.06)


def test_cut_calls_are_taken_to_have_been_to_give_more_tokens_than_complete_ones():
    whole_s, tokens, cut_s, true_tokens = calls(0.2)
    found = fit_pace(whole_s, tokens, cut_s)
    implied = (found.expected_s_of_cut - found.first_s) / found.token_s
    # The counts are those of complete calls, so that the longest answers are out of reach.
    assert np.median(tokens) * 1.4 < implied.mean() < true_tokens.mean()


def test_calls_that_do_not_take_longer_for_more_tokens_have_no_pace():
    rng = np.random.default_rng(1)
    assert fit_pace(rng.lognormal(0, 0.3, 400), rng.integers(5, 500, 400).astype("float64"), np.empty(0)) is None
