import math
from itertools import pairwise

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.load.load_design import Constant, Poisson


def test_poisson_gaps_have_the_mean_and_the_spread_of_an_exponential():
    gaps = [late - early for early, late in pairwise(Poisson(0.5).instants(4_001, seed=7))]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    # Four standard errors of the mean of 4,000 gaps (2 s / √4,000 each); an exponential's spread is its mean.
    assert mean == pytest.approx(2.0, abs=4 * 2.0 / math.sqrt(4_000))
    assert spread == pytest.approx(mean, rel=0.1)
    assert sum(gap > 2.0 for gap in gaps) / len(gaps) == pytest.approx(math.exp(-1), abs=0.03)


def test_a_seed_has_its_own_arrivals_and_they_are_the_same_each_time():
    assert Poisson(0.5).instants(20, seed=1) == Poisson(0.5).instants(20, seed=1)
    assert Poisson(0.5).instants(20, seed=1) != Poisson(0.5).instants(20, seed=2)
    assert Poisson(0.5).instants(30, seed=1)[:20] == Poisson(0.5).instants(20, seed=1)


def test_twice_the_rate_is_the_same_arrivals_in_half_the_time():
    slow, fast = Poisson(0.5).instants(50, seed=1), Poisson(1.0).instants(50, seed=1)
    assert fast == pytest.approx([at_s / 2 for at_s in slow])


def test_constant_arrivals_keep_their_distance():
    assert Constant(0.5).instants(4, seed=1) == (0.0, 2.0, 4.0, 6.0)


@pytest.mark.parametrize("rate", [0, -1.0, math.nan, math.inf, "0.5", True])
@pytest.mark.parametrize("kind", [Poisson, Constant])
def test_a_rate_that_cannot_be_is_refused_by_name(kind, rate):
    with pytest.raises(ConfigurationError, match="rate_per_s"):
        kind(rate)
