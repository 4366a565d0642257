"""The shipped profiles, the page about them, and the scripts that derive them."""

from __future__ import annotations

import csv
import json
import math
import random
from importlib import resources
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from script_modules import load_script

from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.profile import PROFILE_NAMES, LatencyProfile

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ("fast", "typical", "heavy_tail", "local_gpu")
README = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
SHIPPED, SHIPPED_2026 = (
    resources.files("docmind_lab.core.data").joinpath(f"{name}.json").read_text(encoding="utf-8")
    for name in ("latency_profiles", "latency_profiles_2026")
)
DATA, DATA_2026 = json.loads(SHIPPED), json.loads(SHIPPED_2026)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(ROOT / "data" / "derive_profiles.py")


@pytest.fixture(scope="module")
def script_of_sessions() -> ModuleType:
    return load_script(ROOT / "data" / "derive_sessions.py")


@pytest.fixture
def measurements(script: ModuleType, tmp_path: Path) -> Path:
    """A directory with small invented measurements in the real files' format."""
    generator = random.Random(1)
    with (tmp_path / script.LLMPERF_FILE).open("w", newline="") as file:
        writer = csv.writer(file)
        columns = ["endpoint", "ttft_s", "inter_token_latency_s", "end_to_end_latency_s", "output_tokens"]
        writer.writerow([*columns, "input_tokens", "error_code"])
        for choice in script.CHOICES.values():
            for _ in range(40):
                first, inter = generator.uniform(0.2, 0.8), generator.uniform(0.01, 0.03)
                total = first + 100 * inter
                writer.writerow([choice.endpoint, first, total / 100, total, 100, 550, ""])
            writer.writerow([choice.endpoint, 99, 99, 99.5, 100, 550, "429.0"])
            writer.writerow([choice.endpoint, 0, 0.02, 2, 100, 550, ""])
            writer.writerow([choice.endpoint, 2, 0.02, 2, 100, 550, ""])
    for name in script.AZURE_FILES.values():
        lines = [f"2023-11-16 18:15:46,{n},{2 * n}" for n in range(101)]
        (tmp_path / name).write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]))
    return tmp_path


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


# The shipped data and what the README says of it


@pytest.mark.parametrize("name", MEASURED)
def test_the_assumed_retrieval_table_is_the_lognormal_that_is_stated(name):
    fit = DATA["profiles"][name]["lognormal"]["retrieval_s"]
    table = LatencyProfile.named(name).retrieval_s

    # mu is stated to three decimals, so a quantile can be off by half of that.
    stated = [math.exp(fit["mu"] + fit["sigma"] * z) for z in (-1.2816, 0, 1.2816, 2.3263)]
    assert [table.at(level) for level in (0.1, 0.5, 0.9, 0.99)] == pytest.approx(stated, rel=1e-3)


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_every_profile_says_what_is_assumed_of_it(name):
    profile = LatencyProfile.named(name)
    assert "retrieval: assumed" in profile.source
    assert profile.hang_probability == 0, "no chosen request hung"
    assert ("proxy" in profile.description, profile.slots) == ((True, 1) if name == "local_gpu" else (False, None))


# The script


def test_the_shipped_file_has_the_shape_and_format_that_the_script_writes(script, measurements):
    fresh = script.derive(measurements)

    assert fresh["profiles"].keys() == DATA["profiles"].keys()
    for name, entry in fresh["profiles"].items():
        assert entry.keys() == DATA["profiles"][name].keys()
        assert entry["profile"]["retrieval_s"] == DATA["profiles"][name]["profile"]["retrieval_s"]


def test_errors_and_degenerate_rows_are_dropped_and_inter_token_time_leaves_the_first_token_out(script, measurements):
    entry = script.derive(measurements)["profiles"]["typical"]

    assert entry["requests"] == {"sent": 43, "dropped_errors": 1, "dropped_degenerate": 2, "used": 40}
    assert max(entry["profile"]["first_token_s"]) < 1
    inter_token_s = entry["profile"]["inter_token_s"]
    assert 0.01 <= inter_token_s[0] <= inter_token_s[-1] <= 0.03


def test_a_script_makes_the_same_bytes_twice_and_the_readme_has_its_tables(
    script, script_of_sessions, measurements, invented, tmp_path, capsys
):
    for made, given, shipped, row in (
        (script, measurements, SHIPPED, "| typical | first_token_s | measured |"),
        (script_of_sessions, invented, SHIPPED_2026, "| sessions | 60 |"),
    ):
        for name in ("one.json", "two.json"):
            made.main([str(given), "--out", str(tmp_path / name)])
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
        assert row in capsys.readouterr().out
        assert made.as_json(json.loads(shipped)) == shipped
        assert all(table in README for table in made.as_markdown(json.loads(shipped)).split("\n\n"))


# The sessions of 2026


def test_the_script_finds_what_was_planted(script_of_sessions: ModuleType, invented: Path) -> None:
    found = script_of_sessions.derive(invented)
    assert found["typical"]["first_token_s"] == pytest.approx(1.5, rel=0.2)
    assert found["typical"]["inter_token_s"] == pytest.approx(0.02, rel=0.1)
    assert found["slowness_sigma"] == pytest.approx(0.3, rel=0.1)
    shared = found["dependence"]
    assert shared["correlation_low"] < 1 / 3 < shared["correlation_high"]
    assert shared["variance_between"] == pytest.approx(0.03, rel=0.4)
    assert shared["variance_within"] == pytest.approx(0.06, rel=0.1)
    assert found["requests"] == {"sent": 2401, "used": 2400, "capped": 1}
    assert found["profiles"]["coding_2026"]["profile"].keys() == (
        DATA_2026["profiles"]["coding_2026"]["profile"].keys()
    )


def test_both_parts_of_a_request_are_slow_together() -> None:
    profile, typical = LatencyProfile.named("coding_2026"), DATA_2026["typical"]
    for seed in range(50):
        drawn = profile.draw_llm(DrawKey(seed, "planner", "1"))
        first, inter = (drawn.first_token_s / typical["first_token_s"], drawn.inter_token_s / typical["inter_token_s"])
        assert first == pytest.approx(inter, rel=2e-3)
