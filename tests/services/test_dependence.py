"""Calls of a run that are slow together, and a server that is slower under load (trust 6)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from in_threads import in_threads
from scipy import stats
from service_doors import SLOW, Virtual, ask, tags

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.dependence import correlation_in, without_correlation
from docmind_lab.statistics.latency.profile import LatencyProfile

HEAVY = LatencyProfile.named("heavy_tail/3")
RUNS, CALLS = 1500, 2


def first_tokens(profile: LatencyProfile) -> np.ndarray:
    """A row for each run, a column for each call, seconds."""
    return np.array(
        [
            [profile.draw_llm(DrawKey(seed, "planner", f"{step}.0.1")).first_token_s for step in range(CALLS)]
            for seed in range(RUNS)
        ]
    )


@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_correlation_leaves_the_distribution_of_each_call_what_it_is(correlation: float) -> None:
    drawn = first_tokens(replace(HEAVY, correlation=correlation))
    table = HEAVY.first_token_s
    for call in range(CALLS):
        levels = np.interp(drawn[:, call], table.values_s, table.levels)
        # Fixed seeds; one such sample in a thousand is farther from its distribution.
        assert stats.kstest(levels, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9])
def test_the_correlation_of_two_calls_of_a_run_is_what_was_asked(correlation: float) -> None:
    drawn = first_tokens(replace(HEAVY, correlation=correlation))
    scores = stats.norm.ppf((stats.rankdata(drawn, axis=0) - 0.5) / RUNS)
    # Three standard errors of a correlation of 1,500 pairs.
    assert np.corrcoef(scores.T)[0, 1] == pytest.approx(correlation, abs=3 / math.sqrt(RUNS))


def test_the_two_parts_of_a_call_keep_their_rank_correlation() -> None:
    drawn = [replace(HEAVY, correlation=0.6).draw_llm(DrawKey(seed, "planner", "1")) for seed in range(RUNS)]
    rho = stats.spearmanr([d.first_token_s for d in drawn], [d.inter_token_s for d in drawn]).statistic
    assert rho == pytest.approx(HEAVY.rank_correlation, abs=3 / math.sqrt(RUNS))


def test_a_profile_without_options_is_written_and_drawn_as_before_there_were_any() -> None:
    assert not {"correlation", "slowdown"} & HEAVY.to_dict().keys()
    key = DrawKey(7, "planner", "1")
    assert HEAVY.draw_llm(key).first_token_s == HEAVY.first_token_s.at(key.uniform("first_token"))


def test_options_are_read_from_the_name_and_stand_in_it() -> None:
    found = LatencyProfile.named("heavy_tail/3?slowdown=0.2&correlation=0.50")
    assert (found.correlation, found.slowdown, found.time_scale) == (0.5, 0.2, HEAVY.time_scale)
    assert found.name == "heavy_tail/3?correlation=0.5&slowdown=0.2"
    assert LatencyProfile.from_dict(found.to_dict()) == found
    assert found.scaled(0.1).name == "heavy_tail/30?correlation=0.5&slowdown=0.2"
    assert replace(found, correlation=0.0, slowdown=0.0).name == "heavy_tail/3"
    assert without_correlation(found.name) == "heavy_tail/3?slowdown=0.2"
    assert without_correlation("typical?correlation=0.5") == without_correlation("typical") == "typical"
    assert [correlation_in(name) for name in (found.name, HEAVY.name)] == [0.5, 0.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("typical?correlation=2", "correlation must lie in"),
        ("typical?correlation=high", "is not a number"),
        ("typical?corelation=0.5", "is no option"),
        ("typical?correlation=0.5&correlation=0.6", "is no option"),
        ("typical?brownout=0.1", "is no option; write each of correlation, slowdown once"),
        ("typical?slowdown=-1", "slowdown must be 0 or more"),
        ("tipical?correlation=0.5", "no latency profile is named"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        LatencyProfile.named(name)


# ---- load


def asked_at_once(count: int, profile: LatencyProfile = SLOW, *faults: str) -> list[tuple[str, float]]:
    """Outcome and seconds in service of calls that come at the same instant."""

    calls = [tags("r", f"llm/router/{number}.0.1") for number in range(count)]
    virtual = Virtual.of(*faults, profile=profile)
    virtual.run(in_threads, *(partial(ask, headers=headers) for headers in calls))
    rows = virtual.rows
    return [(f"{row.status}", round(row.ended_at - row.received_at - row.queue_wait_s, 6)) for row in rows]


def test_tokens_come_more_slowly_the_more_calls_are_under_way_when_one_starts() -> None:
    slowed = replace(SLOW, slowdown=0.5)
    assert asked_at_once(1, slowed) == [("200", 0.95)]
    # The second starts beside one, the third beside two: 0.05 + 0.9 × 1.5 and 0.05 + 0.9 × 2.
    assert asked_at_once(3, slowed) == [("200", 0.95), ("200", 1.4), ("200", 1.85)]
    assert asked_at_once(3) == [("200", 0.95)] * 3
