import csv
import json
import math
import random
from importlib import resources
from pathlib import Path
from types import ModuleType

import pytest
from script_modules import load_script

from docmind_lab.statistics.latency.profile import PROFILE_NAMES, LatencyProfile

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ("fast", "typical", "heavy_tail", "local_gpu")
README = (ROOT / "data" / "README.md").read_text(encoding="utf-8")
SHIPPED = resources.files("docmind_lab.core.data").joinpath("latency_profiles.json").read_text(encoding="utf-8")
DATA = json.loads(SHIPPED)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script(ROOT / "data" / "derive_profiles.py")


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


def test_the_shipped_file_is_small_and_names_no_local_path():
    assert len(SHIPPED) < 30_000
    assert "/" not in SHIPPED.replace("typical/10", "")


# The script


def test_the_script_makes_the_same_bytes_twice(script, measurements, tmp_path, capsys):
    outputs = []
    for name in ("one.json", "two.json"):
        script.main([str(measurements), "--out", str(tmp_path / name)])
        outputs.append((tmp_path / name).read_bytes())

    assert outputs[0] == outputs[1]
    assert "| typical | first_token_s | measured |" in capsys.readouterr().out


def test_the_shipped_file_has_the_shape_and_format_that_the_script_writes(script, measurements):
    fresh = script.derive(measurements)

    assert script.as_json(DATA) == SHIPPED
    assert fresh["profiles"].keys() == DATA["profiles"].keys()
    for name, entry in fresh["profiles"].items():
        assert entry.keys() == DATA["profiles"][name].keys()
        assert entry["profile"]["retrieval_s"] == DATA["profiles"][name]["profile"]["retrieval_s"]


def test_the_readme_has_the_tables_that_the_script_prints(script):
    for table in script.as_markdown(DATA).split("\n\n"):
        assert table in README


def test_errors_and_degenerate_rows_are_dropped_and_inter_token_time_leaves_the_first_token_out(script, measurements):
    entry = script.derive(measurements)["profiles"]["typical"]

    assert entry["requests"] == {"sent": 43, "dropped_errors": 1, "dropped_degenerate": 2, "used": 40}
    assert max(entry["profile"]["first_token_s"]) < 1
    inter_token_s = entry["profile"]["inter_token_s"]
    assert 0.01 <= inter_token_s[0] <= inter_token_s[-1] <= 0.03


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("llmperf_2023_requests.csv", None, r"llmperf_2023_requests.csv is missing.*data/README\.md"),
        ("azure_llm_2023_code.csv", None, r"azure_llm_2023_code.csv is missing.*data/README\.md"),
        ("azure_llm_2023_code.csv", "TIMESTAMP,ContextTokens\n1,2\n", "no column GeneratedTokens"),
    ],
)
def test_what_is_missing_is_named(script, measurements, file, content, words, tmp_path):
    (measurements / file).unlink()
    if content is not None:
        (measurements / file).write_text(content)
    with pytest.raises(SystemExit, match=words):
        script.main([str(measurements), "--out", str(tmp_path / "out.json")])
    assert not (tmp_path / "out.json").exists()
