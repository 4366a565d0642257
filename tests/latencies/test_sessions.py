"""Whether calls of one session are slow together, and how much (trust 6)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.statistics.latency.sessions import fit_correlation


def calls_of(name: str, sessions: int = 150, calls: int = 6) -> pd.DataFrame:
    """Calls of a profile, as a user's table has them."""
    profile = LatencyProfile.named(name)
    rows = []
    for seed in range(sessions):
        for step in range(calls):
            latency = profile.draw_llm(DrawKey(seed, "planner", f"{step}.0.1"))
            tokens = 20 + 30 * step
            rows.append((f"s{seed}", latency.first_token_s, latency.service_s(tokens), tokens))
    return pd.DataFrame(rows, columns=["session", "first_token_s", "latency_s", "output_tokens"])


def slowness(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"session": frame["session"], "part": "first", "seconds": frame["first_token_s"]})


@pytest.mark.parametrize("correlation", [0.3, 0.7])
def test_the_fitted_correlation_recovers_a_known_one(correlation: float) -> None:
    found = fit_correlation(slowness(calls_of(f"heavy_tail?correlation={correlation}")))
    assert found is not None
    assert found.low < correlation < found.high
    assert found.estimate == pytest.approx(correlation, abs=0.1)
    assert found.correlation == round(found.estimate, 3)


def test_independent_calls_are_not_told_from_chance() -> None:
    found = fit_correlation(slowness(calls_of("heavy_tail")))
    assert found is not None
    assert found.low < 0 < found.high
    assert found.correlation == 0.0
    assert "not told from chance" in found.in_words()


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(1), 0
    for _ in range(100):
        scores = np.sqrt(0.5) * (rng.standard_normal((60, 1)) + rng.standard_normal((60, 5)))
        sessions = np.repeat([f"s{n}" for n in range(60)], 5)
        found = fit_correlation(pd.DataFrame({"session": sessions, "part": "x", "seconds": np.exp(scores).ravel()}))
        assert found is not None
        covered += found.low < 0.5 < found.high
    # Of 100 at 95 %, fewer than 88 come by chance once in 500.
    assert covered >= 88


def test_a_profile_of_calls_with_sessions_has_their_correlation_and_says_so(tmp_path) -> None:
    fitted = LatencyProfile.fit(calls_of("typical?correlation=0.6"))
    assert fitted.correlation == pytest.approx(0.6, abs=0.1)
    assert "is its session's" in fitted.description
    assert fitted.name.endswith(f"?correlation={fitted.correlation:g}")
    assert LatencyProfile.named(str(fitted.save(tmp_path / "mine.json"))) == fitted


def test_calls_without_sessions_count_as_independent_and_the_profile_says_what_to_map() -> None:
    calls = calls_of("typical?correlation=0.6").drop(columns="session")
    fitted = LatencyProfile.fit(calls)
    assert fitted.correlation == 0.0
    assert "map a column to session" in fitted.description
    assert LatencyProfile.fit(calls_of("typical", sessions=9)).correlation == 0.0
