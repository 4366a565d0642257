"""Fits recover what the rows were drawn from, with a fifth of the rows cut, and say what they do not know."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize, stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.latency.durations import Sample, fit_durations
from docmind_lab.statistics.latency.families import best_family

# ---- made-up durations whose truth is known

LEVELS = np.arange(0.05, 0.951, 0.05)
ROWS = 1000
CUT = 0.2


class Mixture:
    """Fast calls and slow ones, one distribution as scipy has them."""

    def __init__(self, share, fast, slow):
        self.share, self.fast, self.slow = share, fast, slow

    def cdf(self, at_s):
        return self.share * self.fast.cdf(at_s) + (1 - self.share) * self.slow.cdf(at_s)

    def ppf(self, levels):
        grid_s = np.linspace(0.0, 20.0, 200_001)
        return np.interp(levels, self.cdf(grid_s), grid_s)

    def rvs(self, size, random_state):
        drawn = [part.rvs(size, random_state=random_state) for part in (self.fast, self.slow)]
        return np.where(random_state.random(size) < self.share, *drawn)


# Spreads of a third: the standard error of a fitted p95 of 1,000 rows is then 2 %, of wider ones more (see the docs).
TRUTHS = {
    "lognormal": stats.lognorm(0.3, scale=1.2),
    "gamma": stats.gamma(9, scale=0.2),
    "mixture": Mixture(0.7, stats.lognorm(0.2, scale=1.0), stats.lognorm(0.2, scale=1.35)),
}


@dataclass(frozen=True)
class Timeouts:
    """Limits that cut so many calls. spread: of the logarithm of independent limits; 0 is one limit for all."""

    spread: float

    def drawn(self, truth, size, rng):
        """A limit for each call."""
        return self.median_s(truth) * np.exp(self.spread * rng.standard_normal(size))

    def median_s(self, truth):
        if not self.spread:
            return float(truth.ppf(1 - CUT))
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        weights = weights / weights.sum()
        return optimize.brentq(
            lambda median_s: weights @ (1 - truth.cdf(median_s * np.exp(self.spread * nodes))) - CUT, 0.05, 100.0
        )


TIMEOUTS = {"independent": Timeouts(0.5), "fixed": Timeouts(0.0)}


def durations(truth, seed, timeouts=None, rows=ROWS):
    """A sample of a truth, a fifth of it cut."""
    rng = np.random.default_rng(seed)
    drawn_s = truth.rvs(rows, random_state=rng)
    limits_s = np.full(rows, np.inf) if timeouts is None else timeouts.drawn(truth, rows, rng)
    cut = limits_s < drawn_s
    return Sample(drawn_s[~cut], limits_s[cut])


# A second mode that one limit hides cannot be known beyond the limit: there the mixture is held to what was seen.
CASES = [(name, how) for name in ("lognormal", "mixture") for how in TIMEOUTS]


def levels_of(name, how):
    return LEVELS[LEVELS < 1 - CUT - 0.01] if (name, how) == ("mixture", "fixed") else LEVELS


def errors(name, how, seed):
    """Relative errors of the table's quantiles up to p95."""
    levels = levels_of(name, how)
    fit = fit_durations(durations(TRUTHS[name], seed, TIMEOUTS[how]), "x")
    return np.array([fit.table.at(level) for level in levels]) / TRUTHS[name].ppf(levels) - 1


@pytest.mark.parametrize(("name", "how"), CASES)
def test_known_distributions_are_recovered_within_5_percent_with_a_fifth_cut(name, how):
    found = np.array([errors(name, how, seed) for seed in range(3)])
    assert np.abs(found).max() < 0.05


@pytest.mark.parametrize("how", TIMEOUTS)
def test_a_distribution_of_no_fitted_family_is_recovered_within_8_percent(how):
    """A gamma distribution of shape 9, up to p95, in three samples (docs/measurements.md)."""
    assert np.abs([errors("gamma", how, seed) for seed in range(3)]).max() < 0.08


@pytest.mark.full
@pytest.mark.parametrize(("name", "how"), CASES)
def test_known_distributions_are_recovered_by_many_samples_without_a_bias(name, how):
    found = np.array([errors(name, how, seed) for seed in range(1000, 1040)])
    # The standard error of a p95 is 2 %, so some 1 in 50 of the samples may be off by more than 5 % somewhere.
    assert (np.abs(found).max(axis=1) < 0.05).mean() >= 0.9
    assert np.abs(found.mean(axis=0)).max() < 0.015


def test_one_lognormal_is_what_scipy_fits_to_censored_data():
    sample = durations(TRUTHS["lognormal"], 3, TIMEOUTS["independent"])
    ours = best_family(sample.observed_s, sample.cut_s)
    censored = stats.CensoredData(uncensored=sample.observed_s, right=sample.cut_s)
    theirs = stats.lognorm(*stats.lognorm.fit(censored, floc=0))
    assert ours.family == "lognormal"
    assert ours.quantile(LEVELS) == pytest.approx(theirs.ppf(LEVELS), rel=1e-3)


def test_two_lognormals_are_chosen_only_where_one_is_much_less_likely():
    one = durations(TRUTHS["lognormal"], 5, TIMEOUTS["independent"])
    two = Sample(np.concatenate([one.observed_s, 3 * one.observed_s]), np.concatenate([one.cut_s, 3 * one.cut_s]))
    assert best_family(one.observed_s, one.cut_s).family == "lognormal"
    assert best_family(two.observed_s, two.cut_s).family == "two lognormals"


def test_an_unobserved_tail_is_called_an_extrapolation():
    fit = fit_durations(durations(TRUTHS["lognormal"], 2, TIMEOUTS["fixed"]), "x")
    assert fit.known_to == pytest.approx(1 - CUT, abs=0.03)
    assert fit.known_to_s < TRUTHS["lognormal"].ppf(1 - CUT)
    assert f"the tail of the lognormal fit, up to {fit.table.at(1.0):.3g} s: an extrapolation" in fit.in_words()
    assert max(fit.levels) <= fit.known_to


def test_with_too_few_rows_for_a_family_the_table_ends_at_the_longest_time_seen_and_says_so():
    fit = fit_durations(Sample(np.array([1.0, 2.0, 3.0]), np.array([9.0, 9.0])), "x")
    assert (fit.family, fit.used, fit.table.at(0.99)) == ("", "empirical", 9.0)
    assert "the true durations are longer" in fit.in_words()


def three_modes(rows=3000):
    """Durations that neither one lognormal nor two of them fit."""
    rng = np.random.default_rng(4)
    return np.exp(0.1 * rng.standard_normal(rows)) * rng.choice([1.0, 3.0, 9.0], rows)


def test_where_no_family_fits_the_table_holds_the_observed_quantiles():
    three = three_modes()
    fit = fit_durations(Sample(three, np.empty(0)), "x")
    assert (fit.used, fit.fits) == ("empirical", False)
    assert "fits badly" in fit.in_words()
    for level in (0.1, 0.5, 0.9):
        assert fit.table.at(level) == pytest.approx(np.quantile(three, level), rel=0.01)
    assert abs(fit.fitted_s[65] / np.quantile(three, 0.65) - 1) > 0.1


def test_the_empirical_table_goes_on_from_the_last_event_with_the_tail_of_the_family():
    three = three_modes()
    fit = fit_durations(Sample(three[three < 9], np.full((three >= 9).sum(), 9.0)), "x")
    assert (fit.used, fit.known_to) == ("empirical", pytest.approx(5 / 6, abs=0.02))
    assert fit.table.at(0.5) == pytest.approx(fit.empirical_s[50])
    assert fit.table.at(fit.known_to) >= fit.empirical_s[-1]
    assert fit.table.at(0.99) > 1.2 * fit.known_to_s
    assert "the tail of the two lognormals fit" in fit.in_words()


def test_equal_durations_are_one_duration():
    fit = fit_durations(Sample(np.full(50, 0.25), np.empty(0)), "x")
    assert (fit.table.at(0.0), fit.table.at(1.0), fit.family) == (0.25, 0.25, "")


def test_durations_rounded_down_to_zero_are_kept():
    seconds = np.round(TRUTHS["lognormal"].rvs(200, random_state=np.random.default_rng(1)) * 0.0005, 3)
    fit = fit_durations(Sample(seconds, np.empty(0)), "x")
    assert (seconds == 0).any()
    assert fit.table.at(0.0) >= 0.0


def test_many_rows_are_fitted_by_an_even_choice_of_them():
    fit = fit_durations(durations(TRUTHS["gamma"], 1, TIMEOUTS["independent"], rows=60_000), "x")
    assert fit.observed + fit.cut == 60_000
    assert fit.table.at(0.95) == pytest.approx(TRUTHS["gamma"].ppf(0.95), rel=0.02)


def test_rows_that_were_all_cut_cannot_be_fitted():
    with pytest.raises(ConfigurationError, match=r"first_token_s: all 5 rows were cut.*longer timeout"):
        fit_durations(Sample(np.empty(0), np.ones(5)), "first_token_s")
