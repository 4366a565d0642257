import json
import math
from dataclasses import replace

import pytest
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.profile import PROFILE_NAMES, LatencyProfile, LlmLatency
from docmind_lab.statistics.latency.quantiles import QuantileTable


def profile(**changes: object) -> LatencyProfile:
    table = QuantileTable((0.0, 1.0), (0.0, 1.0))
    made = LatencyProfile("mine", "Mine.", "a test", table, table, table)
    return replace(made, **changes)


PROFILES = [profile(slots=3, hang_probability=0.3, rank_correlation=-0.5), *map(LatencyProfile.named, PROFILE_NAMES)]
KEYS = [
    DrawKey(seed, role, "2.0.1", attempt) for seed in (-1, 7) for role in ("planner", "router") for attempt in (1, 5)
]
TABLES = [table for each in PROFILES for table in (each.first_token_s, each.inter_token_s, each.retrieval_s)]
every_profile = pytest.mark.parametrize("made", PROFILES, ids=lambda each: each.name)


def spearman(drawn: list[LlmLatency]) -> float:
    return stats.spearmanr([d.first_token_s for d in drawn], [d.inter_token_s for d in drawn]).statistic


def many_draws(of: LatencyProfile, n: int = 4000) -> list[LlmLatency]:
    return [of.draw_llm(DrawKey(seed, "planner", "1")) for seed in range(n)]


# Quantile tables


def test_a_table_gives_its_own_quantiles_back():
    for table in TABLES:
        assert tuple(table.at(level) for level in table.levels) == pytest.approx(table.values_s)


def test_between_two_levels_the_quantile_is_linear_and_outside_0_to_1_there_is_none():
    table = QuantileTable((0.0, 0.5, 1.0), (1.0, 2.0, 10.0))

    assert [table.at(level) for level in (0.25, 0.5, 0.75)] == [1.5, 2.0, 6.0]
    for level in (-0.01, 1.01, math.nan):
        with pytest.raises(ConfigurationError, match="level"):
            table.at(level)


@pytest.mark.parametrize(
    ("table_levels", "values_s", "named"),
    [
        ((0.0,), (1.0,), "length"),
        ((0.0, 1.0), (1.0, 2.0, 3.0), "length"),
        ((0.1, 1.0), (1.0, 2.0), "levels"),
        ((0.0, 0.9), (1.0, 2.0), "levels"),
        ((0.0, math.nan, 1.0), (1.0, 2.0, 3.0), "levels"),
        ((0.0, 1.0), (2.0, 1.0), "values_s"),
        ((0.0, 1.0), (-1.0, 1.0), "values_s"),
        ((0.0, 1.0), (0.0, math.inf), "values_s"),
    ],
)
def test_a_table_that_is_no_distribution_is_refused(table_levels, values_s, named):
    with pytest.raises(ConfigurationError, match=named):
        QuantileTable(table_levels, values_s)


# Draws


@every_profile
def test_a_key_always_draws_the_same_latency(made):
    again = LatencyProfile.from_dict(made.to_dict())
    for key in KEYS:
        assert made.draw_llm(key) == again.draw_llm(replace(key))
        assert made.draw_retrieval(key) == again.draw_retrieval(replace(key))


def test_first_token_inter_token_and_retrieval_are_separate_draws():
    key = DrawKey(7, "planner", "1")
    drawn = profile().draw_llm(key)

    assert len({drawn.first_token_s, drawn.inter_token_s, profile().draw_retrieval(key)}) == 3


@pytest.mark.parametrize("rho", [-1.0, -0.43, 0.0, 0.7, 1.0])
def test_draws_have_the_profiles_rank_correlation(rho):
    # The standard error of rho over 4,000 pairs is at most 0.016; four of them.
    assert spearman(many_draws(profile(rank_correlation=rho))) == pytest.approx(rho, abs=0.064)


@pytest.mark.parametrize("uniform", [0.0, 1.0])
def test_correlated_draws_survive_the_ends_of_the_unit_interval(uniform, monkeypatch):
    monkeypatch.setattr(DrawKey, "uniform", lambda self, what: uniform)

    drawn = profile(rank_correlation=0.5).draw_llm(DrawKey(1, "planner", "1"))

    assert 0 <= drawn.inter_token_s <= 1


@pytest.mark.parametrize(("probability", "share"), [(0.0, 0.0), (0.25, 0.25), (1.0, 1.0)])
def test_the_share_of_hanging_calls_is_the_hang_probability(probability, share):
    drawn = many_draws(profile(hang_probability=probability))

    # 0.028 is four standard errors of a share of 0.25 in 4,000.
    assert sum(d.hangs for d in drawn) / len(drawn) == pytest.approx(share, abs=0.028 if 0 < share < 1 else 0)


@pytest.mark.parametrize(("hangs", "seconds"), [(False, 3.5), (True, math.inf)])
def test_service_time_is_first_token_plus_tokens_times_inter_token_and_of_a_hang_endless(hangs, seconds):
    assert LlmLatency(0.5, 0.02, hangs=hangs).service_s(output_tokens=150) == pytest.approx(seconds)


# Scaling


@every_profile
@pytest.mark.parametrize("factor", [0.001, 0.3, 1000.0])
def test_scaling_a_profile_scales_every_draw_and_nothing_else(made, factor):
    scaled = made.scaled(factor)
    assert scaled.slots == made.slots
    assert LatencyProfile.from_dict(json.loads(json.dumps(scaled.to_dict()))) == scaled, "it survives JSON"
    for key in KEYS:
        slow, fast = made.draw_llm(key), scaled.draw_llm(key)
        assert fast.first_token_s == pytest.approx(factor * slow.first_token_s)
        assert fast.inter_token_s == pytest.approx(factor * slow.inter_token_s)
        assert fast.hangs == slow.hangs
        assert scaled.draw_retrieval(key) == pytest.approx(factor * made.draw_retrieval(key))


@pytest.mark.parametrize(
    ("factors_in_turn", "name"),
    [
        ([0.1], "mine/10"),
        ([0.5], "mine/2"),
        ([0.3], "mine*0.3"),
        ([2], "mine*2"),
        ([1], "mine"),
        ([0.5, 0.2], "mine/10"),
        ([0.5, 0.2, 10], "mine"),
    ],
)
def test_the_name_says_how_a_profile_was_scaled_in_all_and_scaling_back_leaves_no_trace(factors_in_turn, name):
    scaled = profile()
    for factor in factors_in_turn:
        scaled = scaled.scaled(factor)

    assert (scaled.name, scaled.description.count("Scaled")) == (name, name != "mine")
    assert scaled.time_scale == pytest.approx(math.prod(factors_in_turn))


@pytest.mark.parametrize("factor", [0, -1, math.inf, math.nan])
def test_a_factor_that_is_not_positive_and_finite_is_refused(factor):
    with pytest.raises(ConfigurationError, match="factor"):
        profile().scaled(factor)


# Names and manifests


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("typicl", "typical"), ("heavytail", "heavy_tail"), ("Fast", "fast"), ("zzz", None)]
)
def test_an_unknown_name_is_refused_with_the_nearest_if_any_and_all_known_ones(wrong, nearest):
    with pytest.raises(ConfigurationError, match=wrong) as refused:
        LatencyProfile.named(wrong)

    assert all(name in str(refused.value) for name in PROFILE_NAMES)
    assert (
        (f"Did you mean '{nearest}'" in str(refused.value)) == ("Did you mean" in str(refused.value)) == bool(nearest)
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("colour", "red"),
        ("name", 7),
        ("slots", 0),
        ("slots", True),
        ("hang_probability", 1.1),
        ("hang_probability", math.nan),
        ("time_scale", 0),
        ("rank_correlation", -1.1),
        ("retrieval_s", [0.0, 1.0]),
        ("retrieval_s", {"levels": [0.0, 1.0]}),
        ("retrieval_s", {"levels": [0.0, 1.0], "values_s": ["a", "b"]}),
        ("retrieval_s", {"levels": [0.0, 1.0], "values_s": [2.0, 1.0]}),
    ],
)
def test_a_manifest_value_that_does_not_fit_is_refused_by_its_field(field, value):
    with pytest.raises(ConfigurationError, match=field):
        LatencyProfile.from_dict(profile().to_dict() | {field: value})
