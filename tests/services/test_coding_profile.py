"""The profile of 2026: the shipped file, the page about it, and the script that derives it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from script_modules import load_script

from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.profile import LatencyProfile

DATA_FOLDER = Path(__file__).resolve().parents[2] / "data"
SHIPPED = resources.files("docmind_lab.core.data").joinpath("latency_profiles_2026.json").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        yield load_script(DATA_FOLDER / "derive_sessions.py", patch)


@pytest.fixture
def invented(tmp_path: Path) -> Path:
    """Requests that take 1.5 s and 0.02 s a token, times a slowness of which a third is its session's."""
    draw = np.random.default_rng(3)
    session = np.repeat(np.arange(60), 40)
    slowness = np.exp(0.3 * (np.sqrt(1 / 3) * draw.normal(size=60)[session] + np.sqrt(2 / 3) * draw.normal(size=2_400)))
    tokens = draw.integers(20, 2_000, size=2_400)
    frame = pd.DataFrame(
        {
            "session": session,
            "agent": 0,
            "index": np.tile(np.arange(40), 60),
            "api_time_s": (1.5 + 0.02 * tokens) * slowness,
            "output_tokens": tokens,
        }
    )
    frame.loc[len(frame)] = [0, 0, 40, 300.0, 0]
    path = tmp_path / "sessions.csv.gz"
    frame.to_csv(path, index=False)
    return path


def test_the_readme_has_the_table_that_the_script_prints(script: ModuleType) -> None:
    readme = (DATA_FOLDER / "README.md").read_text(encoding="utf-8")
    assert script.as_markdown(json.loads(SHIPPED)) in readme
    assert script.as_json(json.loads(SHIPPED)) == SHIPPED


def test_the_script_finds_what_was_planted(script: ModuleType, invented: Path) -> None:
    found = script.derive(invented)
    assert found["typical"]["first_token_s"] == pytest.approx(1.5, rel=0.2)
    assert found["typical"]["inter_token_s"] == pytest.approx(0.02, rel=0.1)
    assert found["slowness_sigma"] == pytest.approx(0.3, rel=0.1)
    shared = found["dependence"]
    assert shared["correlation_low"] < 1 / 3 < shared["correlation_high"]
    assert shared["variance_between"] == pytest.approx(0.03, rel=0.4)
    assert shared["variance_within"] == pytest.approx(0.06, rel=0.1)
    assert found["requests"] == {"sent": 2401, "used": 2400, "capped": 1}
    assert found["profiles"]["coding_2026"]["profile"].keys() == (
        json.loads(SHIPPED)["profiles"]["coding_2026"]["profile"].keys()
    )


def test_the_same_input_gives_the_same_bytes(
    script: ModuleType, invented: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        script.main([str(invented), "--out", str(tmp_path / name)])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert "| sessions | 60 |" in capsys.readouterr().out


def test_a_missing_file_is_named_with_where_to_get_it(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"nothing.csv cannot be read.*data/README\.md"):
        script.derive(tmp_path / "nothing.csv")


def test_both_parts_of_a_request_are_slow_together() -> None:
    profile, typical = LatencyProfile.named("coding_2026"), json.loads(SHIPPED)["typical"]
    for seed in range(50):
        drawn = profile.draw_llm(DrawKey(seed, "planner", "1"))
        first, inter = (drawn.first_token_s / typical["first_token_s"], drawn.inter_token_s / typical["inter_token_s"])
        assert first == pytest.approx(inter, rel=2e-3)
