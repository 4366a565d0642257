"""A profile of calls: what it draws, what it says of itself, and the way through files and the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.statistics.latency.fitting import split_calls
from docmind_lab.statistics.latency.observed_calls import read_calls
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.views.cli.app import app

MAPPED = {"latency_s": "duration_ms:ms", "output_tokens": "tokens", "outcome": "status"}


def table(rows=1500, seed=3, first_tokens=False, cut=0.15):
    """Calls with 0.8 s to the first token and 20 ms a token, drawn apart; the longest ones timed out."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(20, 400, rows)
    first_s, each_s = rng.lognormal(np.log(0.8), 0.3, rows), rng.lognormal(np.log(0.02), 0.3, rows)
    whole_s = first_s + tokens * each_s
    limit_s = np.quantile(whole_s, 1 - cut)
    late = whole_s > limit_s
    frame = pd.DataFrame(
        {
            "duration_ms": np.minimum(whole_s, limit_s) * 1000,
            "tokens": np.where(late, np.nan, tokens),
            "status": np.where(late, "timeout", "ok"),
            "true_s": whole_s,
            "true_tokens": tokens,
        }
    )
    return (
        frame.assign(ttft=np.where(first_s < frame["duration_ms"] / 1000, first_s, np.nan)) if first_tokens else frame
    )


@pytest.fixture(scope="module")
def fitted():
    """Of calls without first tokens, drawn and fitted once."""
    return LatencyProfile.fit(table(), MAPPED, name="mine", slots=4)


def test_whole_latencies_are_kept_where_no_first_token_is_recorded(fitted):
    made = table()
    told = LatencyProfile.fit(made, MAPPED)
    keys = [DrawKey(1, "any", str(place)) for place in range(len(made))]
    drawn_s = [told.draw_llm(key).service_s(tokens) for key, tokens in zip(keys, made["true_tokens"], strict=True)]
    # Two samples of 1,500: the standard error of the ratio of their p90 is 3 %.
    for level in (0.25, 0.5, 0.75, 0.9):
        assert np.quantile(drawn_s, level) == pytest.approx(made["true_s"].quantile(level), rel=0.08)
    assert told.rank_correlation == 1.0
    assert "No first tokens are recorded." in told.description


def test_recorded_first_tokens_are_told_apart_from_the_tokens():
    found = LatencyProfile.fit(table(first_tokens=True), MAPPED | {"first_token_s": "ttft"})
    assert found.first_token_s.at(0.5) == pytest.approx(0.8, rel=0.05)
    assert found.first_token_s.at(0.95) == pytest.approx(0.8 * np.exp(0.3 * 1.645), rel=0.05)
    assert found.rank_correlation == pytest.approx(0.0, abs=0.1)
    assert "225 calls were cut after their first token" in found.description


def test_a_few_first_tokens_are_said_to_be_too_few_and_not_that_there_are_none():
    calls = pd.DataFrame({"latency_s": np.linspace(1.0, 2.0, 30)}).assign(first_token_s=np.nan)
    calls.loc[:9, "first_token_s"] = 0.2
    words = LatencyProfile.fit(calls).description
    assert "Only 10 of 30 model calls came with a first token, too few to go by, and latencies do not tell" in words
    assert LatencyProfile.fit(calls.iloc[20:21]).source.startswith("Fitted to 1 call of")


def test_without_tokens_the_whole_latency_is_the_time_to_the_first_token():
    found = LatencyProfile.fit(table()[["duration_ms", "status"]], {"latency_s": "duration_ms:ms", "outcome": "status"})
    assert found.inter_token_s.at(1.0) == 0.0
    assert "the tokens after it as taking no time" in found.description


def test_a_profile_says_what_was_not_measured(fitted):
    for words in (
        "1,275 durations observed, 225 cut",
        "right-censored",
        "hang_probability is 0: timeouts do not tell hangs from slow calls.",
        "No search was observed: retrieval_s is that of the profile 'typical'.",
    ):
        assert words in fitted.description
    assert (fitted.hang_probability, fitted.slots, fitted.name) == (0.0, 4, "mine")


def test_searches_have_a_fit_of_their_own():
    seconds = np.random.default_rng(1).lognormal(-3, 0.2, 300)
    frame = pd.DataFrame({"latency_s": [*seconds, *(10 * seconds)], "kind": ["retrieval"] * 300 + ["llm"] * 300})
    found = LatencyProfile.fit(frame)
    assert found.retrieval_s.at(0.5) == pytest.approx(np.exp(-3), rel=0.03)
    assert "No search was observed" not in found.description


def test_the_calls_of_a_known_profile_give_that_profile_back():
    truth = LatencyProfile.named("heavy_tail")
    drawn = [truth.draw_llm(DrawKey(7, "planner", f"{place}.0.1")) for place in range(600)]
    tokens = [5 + place % 60 for place in range(600)]
    calls = pd.DataFrame(
        {
            "latency_s": [each.service_s(count) for each, count in zip(drawn, tokens, strict=True)],
            "first_token_s": [each.first_token_s for each in drawn],
            "output_tokens": tokens,
        }
    )
    parts, found = split_calls(read_calls(calls)), LatencyProfile.fit(calls)
    assert parts.first_token.observed_s == pytest.approx([each.first_token_s for each in drawn], abs=1e-9)
    assert parts.inter_token.observed_s == pytest.approx([each.inter_token_s for each in drawn], abs=1e-9)
    for level in (0.25, 0.5, 0.75):
        assert found.first_token_s.at(level) == pytest.approx(truth.first_token_s.at(level), rel=0.1)


def test_a_profile_in_a_file_is_named_by_its_path(fitted, tmp_path):
    path = fitted.save(tmp_path / "deep" / "mine.json")
    again = LatencyProfile.named(str(path))
    assert again == fitted
    assert "evidence" not in path.read_text()
    # Files had it until 0.2.
    path.write_text(json.dumps(json.loads(path.read_text()) | {"evidence": {"first_token_s": {}}}))
    assert LatencyProfile.named(str(path)) == fitted
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps(fitted.to_dict()))
    assert LatencyProfile.named(str(plain)) == fitted
    tenth = LatencyProfile.named(f"{path}/10")
    assert (tenth.name, tenth.evidence) == ("mine/10", None)
    assert tenth.first_token_s.at(0.5) == pytest.approx(fitted.first_token_s.at(0.5) / 10)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON"),
        ("3", "is not a JSON object"),
        ("{}", "name: Field required.*docmind-lab profile makes one"),
        ('{"schema_version": 9}', "has schema_version 9, known is 1"),
        ('{"profile": 3}', "docmind-lab profile makes one"),
    ],
)
def test_a_profiles_file_that_does_not_fit_is_one_clear_line(tmp_path, content, words):
    path = tmp_path / "mine.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match=words):
        LatencyProfile.named(str(path))


def run_command(*words):
    return CliRunner().invoke(app, ["profile", *map(str, words)])


def test_the_command_writes_a_profile_and_says_how_to_use_it(tmp_path):
    table().to_csv(tmp_path / "calls.csv", index=False)
    mapped = [word for field, column in MAPPED.items() for word in ("--map", f"{field}={column}")]
    out = tmp_path / "mine.json"
    done = run_command(tmp_path / "calls.csv", "--out", out, *mapped)
    assert done.exit_code == 0, done.output
    assert f"use it as --latencies {out}" in done.output
    assert LatencyProfile.named(str(out)).name == "calls"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--map", "latency_s"], "is not FIELD=COLUMN"),
        (["--map", "latency_s=a", "--map", "latency_s=b"], "names latency_s twice"),
        (["--map", "latency_s=nowhere"], "has no column 'nowhere'"),
        (["--map", "latency_s=duration_ms:ms", "--out", "x.txt"], "must end in .json"),
    ],
)
def test_bad_usage_of_the_command_is_one_clear_line(tmp_path, words, said):
    table(rows=30).to_csv(tmp_path / "calls.csv", index=False)
    done = run_command(tmp_path / "calls.csv", *words)
    assert isinstance(done.exception, ConfigurationError)
    assert said in str(done.exception)
