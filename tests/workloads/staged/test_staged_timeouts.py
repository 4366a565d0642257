"""How long the agent may take: fixed, and by length and what was seen lately."""

from __future__ import annotations

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.staged.timeouts import AdaptiveTimeout, FixedTimeout


def seen(*seconds: float, characters: int = 0, **options: float) -> AdaptiveTimeout:
    timeout = AdaptiveTimeout(headroom=1.0, warm_up=3, **options)  # type: ignore[arg-type]
    for taken_s in seconds:
        timeout.observe(characters, taken_s, ended=True)
    return timeout


def test_until_enough_was_seen_it_is_the_first_one():
    assert seen(2.0, 2.0).timeout_s(500) == 12.0
    assert seen(2.0, 2.0, 2.0).timeout_s(0) == 2.0


def test_it_is_a_quantile_of_the_last_ones():
    assert seen(*map(float, range(1, 11)), quantile=0.9).timeout_s(0) == 9.0
    assert seen(*map(float, range(1, 11)), quantile=0.5).timeout_s(0) == 5.0
    rolling = seen(50.0, 50.0, 50.0, 2.0, 3.0, 4.0, window=3)
    assert rolling.timeout_s(0) == 4.0


def test_it_grows_with_the_length_of_the_chunk():
    timeout = seen(4.0, 4.0, 4.0, characters=1000)
    assert (timeout.timeout_s(0), timeout.timeout_s(1000), timeout.timeout_s(3000)) == (2.0, 4.0, 8.0)


def test_a_chunk_that_was_cut_raises_it():
    timeout = seen(4.0, 4.0, 4.0)
    timeout.observe(0, 4.0, ended=False)
    assert timeout.timeout_s(0) == 8.0


def test_it_stays_between_its_bounds():
    assert seen(0.1, 0.1, 0.1).timeout_s(0) == 1.0
    assert seen(500.0, 500.0, 500.0).timeout_s(0) == 60.0


@pytest.mark.parametrize(
    "options",
    [{"quantile": 0.0}, {"quantile": 1.5}, {"warm_up": 0}, {"window": 2}, {"least_s": 90.0}, {"headroom": 0.0}],
)
def test_values_that_cannot_be_used_are_refused(options):
    with pytest.raises(ConfigurationError):
        AdaptiveTimeout(**options)


def test_a_fixed_one_learns_nothing():
    timeout = FixedTimeout(3.0)
    timeout.observe(10, 50.0, ended=False)
    assert timeout.timeout_s(10_000) == 3.0
    with pytest.raises(ConfigurationError, match="primary timeout"):
        FixedTimeout(0.0)
