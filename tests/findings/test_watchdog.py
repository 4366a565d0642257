"""Limits of calls: what is said of which calls, which calls count, what other libraries are given, and the command."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from commands_here import said
from drawn_figures import assert_dark_on_white
from golden import assert_golden
from langgraph.types import TimeoutPolicy
from made_up_calls import drawn_study, study_of_calls

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.watchdog import EXPORTS
from docmind_lab.tables.traces.trace_tables import Span, TracedRun, Traces

EXAMPLES = Path(__file__).parents[2] / "examples" / "graphs"
RNG = np.random.default_rng(20)
STREAMED = drawn_study(300, 6, RNG, shared=0.3)
ONE_PIECE = RNG.lognormal(0, 0.4, 700)
HUNG = study_of_calls(
    np.append(ONE_PIECE, np.full(20, 60.0)),
    np.append(0.999 * ONE_PIECE, np.full(20, np.nan)),
    outcome=np.repeat(["ok", "timeout"], [700, 20]),
)
CASES = {
    "streamed calls": (STREAMED, {}),
    "too few": (drawn_study(40, 6, RNG), {}),
    "calls that were cut, of which nothing says whether they hung": (HUNG, {}),
    "calls that were cut, and hung": (HUNG, {"hung_after_s": 30.0}),
    "calls that are all as long, and none of them cut": (study_of_calls(np.full(600, 4.0)), {}),
    "calls of some milliseconds": (study_of_calls(ONE_PIECE / 1000), {}),
}


def test_what_is_said_of_which_calls() -> None:
    texts = {name: dl.watchdog(source, **options).text() for name, (source, options) in CASES.items()}
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_the_rows_are_what_the_limits_do_to_the_calls() -> None:
    dog, calls = dl.watchdog(STREAMED), STREAMED.calls
    limits, rows = dog.limits, dog.rows.set_index("limit")
    killed = {
        "first_token": calls["first_token_at_s"] - calls["started_at_s"] > limits.first_token_s,
        "idle": calls["longest_gap_s"] > limits.idle_s,
        "total": calls["latency_s"] > limits.total_s,
    }
    for limit, is_killed in killed.items():
        assert rows.loc[limit, "killed"] == pytest.approx(is_killed.mean())
        assert rows.loc[limit, "low"] <= is_killed.mean() <= rows.loc[limit, "high"]
    together = np.logical_or.reduce(list(killed.values())).mean()
    assert rows.loc["together", "killed"] == pytest.approx(together)
    assert 0 < together <= 0.01
    assert dog.killed(STREAMED).estimate == pytest.approx(together)
    # A looser promise has tighter limits.
    looser = dl.watchdog(STREAMED, 0.1).limits
    assert looser.total_s < limits.total_s
    assert looser.idle_s < limits.idle_s


def test_limits_of_a_role_are_those_of_its_calls_alone() -> None:
    both = np.concatenate([ONE_PIECE, 9 * ONE_PIECE])
    study = study_of_calls(both, seed=np.tile(np.arange(700), 2), role=np.repeat(["writer", "judge"], 700))
    writer, judge = (dl.watchdog(study, role=role) for role in ("writer", "judge"))
    assert writer.limits == dl.watchdog(study_of_calls(ONE_PIECE)).limits
    assert judge.limits.total_s == pytest.approx(9 * writer.limits.total_s, rel=0.01)
    assert judge.killed(study).estimate <= 0.01 < dl.watchdog(study, 0.5, role="writer").killed(study).estimate
    assert "From 700 model calls of judge in 700 independent runs" in judge.text()
    with pytest.raises(ConfigurationError, match="role is 'reader': the calls are of judge and writer"):
        dl.watchdog(study, role="reader")


def test_runs_under_a_fault_are_left_out_and_calls_of_one_seed_are_of_one_unit() -> None:
    total = np.append(ONE_PIECE, np.full(30, 90.0))
    struck = study_of_calls(total, fault=np.repeat(["none", "hang:*"], [700, 30]))
    assert dl.watchdog(struck).limits == dl.watchdog(study_of_calls(ONE_PIECE)).limits
    assert "30 runs under a fault were left out." in dl.watchdog(struck).notes
    # Two alternatives over the same seeds.
    twice = study_of_calls(np.tile(ONE_PIECE, 2), seed=np.tile(np.arange(700), 2))
    counts = dl.watchdog(twice).counts
    assert (counts["calls"], counts["runs"]) == (1400, 700)
    assert counts["enough"] < 750


def test_a_call_still_open_lasted_until_the_horizon_and_servers_searches_and_refusals_are_no_model_calls() -> None:
    study = study_of_calls(np.append(ONE_PIECE, [math.nan, 1.0, 1.0, 1.0]))
    study.calls.loc[700, "outcome"] = "abandoned"
    study.calls.loc[701, "seen_from"], study.calls.loc[702, "kind"] = "server", "retrieval"
    study.calls.loc[703, "outcome"] = "refused"
    counts = dl.watchdog(study).counts
    assert (counts["calls"], counts["cut"]) == (701, 1)
    # Of the horizon of 100 s 98 were left when it began.
    assert [dl.watchdog(study, hung_after_s=seconds).counts["cut"] for seconds in (98.0, 98.1)] == [0, 1]


def test_limits_that_cut_calls_do_not_make_those_to_come_tighter() -> None:
    """A call that a limit cut is no short call: the next watchdog, of runs under the limits, says much the same."""
    calls = STREAMED.calls
    cut_s = float(np.quantile(calls["latency_s"], 0.98))
    is_cut = calls["latency_s"] > cut_s
    seen = study_of_calls(
        calls["latency_s"].clip(upper=cut_s),
        seed=calls["run_id"].str.removeprefix("run-").astype(int),
        outcome=np.where(is_cut, "timeout", "ok"),
    )
    assert not dl.watchdog(seen, 0.01).is_known
    assert dl.watchdog(seen, 0.05).limits.total_s == pytest.approx(
        dl.watchdog(study_of_calls(calls["latency_s"]), 0.05).limits.total_s, rel=0.1
    )


def traces_of(seconds: Any, first_s: float = math.nan) -> Traces:
    runs = [TracedRun(str(n), f"session-{n // 2}", "test", each, each, "answered") for n, each in enumerate(seconds)]
    calls = [
        Span(str(n), "c", "", "writer", "llm", 0.0, each, first_token_at_s=first_s * each)
        for n, each in enumerate(seconds)
    ]
    return Traces.of(runs, calls)


def test_traces_are_read_by_session_with_their_first_tokens(tmp_path: Path) -> None:
    dog = dl.watchdog(traces_of(np.tile(ONE_PIECE, 2), 0.25))
    assert dog.limits.first_token_s == pytest.approx(dog.limits.total_s / 4, rel=0.2)
    assert dog.limits.idle_s is None
    assert dog.counts["runs"] == 700
    file = traces_of(np.tile(ONE_PIECE, 2), 0.25).write(tmp_path / "traces.jsonl")
    assert dl.watchdog(str(file)).limits == dog.limits


@pytest.mark.parametrize("source", [STREAMED, study_of_calls(ONE_PIECE)], ids=["streamed", "in one piece"])
def test_exported_code_makes_what_it_names_of_the_limits(source: Any) -> None:
    dog = dl.watchdog(source)
    made: dict[str, Any] = {}
    for library in EXPORTS:
        exec(dog.export(library).replace("OpenAI(", "OpenAI(api_key='none', "), made)
    silence_s = max(dog.limits.first_token_s or 0, dog.limits.idle_s or 0)
    assert made["policy"] == TimeoutPolicy(run_timeout=dog.limits.total_s, idle_timeout=silence_s or None)
    read_s = silence_s or dog.limits.total_s
    assert made["timeout"] == httpx.Timeout(read_s)
    assert (made["client"].timeout.read, made["client"].max_retries) == (read_s, 1)
    assert f"A call that never answers takes 2 × {read_s:g} s" in dog.export("openai")
    with pytest.raises(ConfigurationError, match="library is 'boto': choose langgraph, httpx or openai"):
        dog.export("boto")


# ---- mistakes, the figure and the command


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (STREAMED, {"false_kills": 0}, "false_kills is 0: choose a share between 0 and 1, as 0.01"),
        (STREAMED, {"false_kills": math.nan}, "false_kills is nan"),
        (STREAMED, {"hung_after_s": 0.0}, "hung_after_s is 0.0: give seconds above 0, or None"),
        (study_of_calls([1.0, 2.0], outcome="error"), {}, "none of 2 model calls came to its end"),
        (study_of_calls([]), {}, "none of 0 model calls came to its end"),
        ("nowhere", {}, "nowhere is not there"),
    ],
)
def test_a_mistake_is_refused_by_name(source: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        dl.watchdog(source, **options)


def test_without_limits_nothing_is_exported_and_the_error_says_what_is_missing() -> None:
    dog = dl.watchdog(drawn_study(40, 6, RNG))
    assert (dog.is_known, dog.limits) == (False, dl.Limits())
    for use in (lambda: dog.export("httpx"), lambda: dog.killed(STREAMED)):
        with pytest.raises(ConfigurationError, match="900 independent calls are needed to promise 1%"):
            use()


def test_the_figure_draws_the_curve_and_the_limits() -> None:
    dog = dl.watchdog(STREAMED)
    ax = dl.plots.false_kills(dog, ax=dl.plots.OFFSCREEN)
    lines = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    for kind, seconds in (("first_token", dog.limits.first_token_s), ("total", dog.limits.total_s)):
        points = dog.curve[(dog.curve["limit"] == kind) & (dog.curve["killed"] > 0)]
        np.testing.assert_array_equal(lines[f"killed:{kind}"].get_xydata(), points[["at_s", "killed"]])
        assert lines[f"limit:{kind}"].get_xdata() == [seconds]
    assert lines["promise"].get_ydata() == [0.01, 0.01]
    assert_dark_on_white(dl.plots.false_kills, dog)
    assert "limit:total" not in {line.get_gid() for line in dl.plots.false_kills(dl.watchdog(HUNG)).lines}


def test_the_command_says_it_draws_it_and_prints_it_as_json(capsys: Any, tmp_path: Path) -> None:
    file, png = traces_of(np.tile(ONE_PIECE, 2)).write(tmp_path / "traces.jsonl"), tmp_path / "limits.png"
    code, out, _ = said(capsys, "watchdog", file, "--plot", png)
    assert (code, png.exists()) == (0, True)
    assert out.startswith("Limits that together kill at most 1% of healthy calls: total ")
    code, out, _ = said(capsys, "watchdog", file, "--false-kills", "0.05", "--json")
    answer = json.loads(out)
    assert answer["limits"] == dl.watchdog(str(file), 0.05).limits.text
    assert {row["limit"] for row in answer["rows"]} == {"total", "together"}
    assert said(capsys, "watchdog", file, "--plot", "limits.pdf")[0] == 2
    assert "false_kills is 3.0" in said(capsys, "watchdog", file, "--false-kills", "3")[2]


def test_a_study_of_the_lab_is_read_from_its_folder(tmp_path: Path) -> None:
    study = dl.compare(decision_timeout_s=30, runs=3, alternatives="A", seed=5)
    folder = study.save(tmp_path / "study")
    dog = dl.watchdog(folder, 0.4)
    assert dog.limits == dl.watchdog(study, 0.4).limits
    assert "the answers came in one piece" in dog.text()


def test_limits_of_a_graph_that_streams_let_its_healthy_calls_end_in_production(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    inputs = EXAMPLES / "streaming.jsonl"
    graph = runpy.run_path(str(EXAMPLES / "streaming.py"))["graph"]

    def study_of(measured: Any, runs: int, seed: int, faults: str = "none") -> Any:
        system, world = dl.graph(measured, inputs), dl.World(faults=faults)
        return dl.compare(system, 600, alternatives="unguarded", runs=runs, seed=seed, world=world, workers=1)

    dog = dl.watchdog(study_of(graph, 80, 1), 0.1)
    assert 0 < dog.limits.idle_s < dog.limits.total_s
    enforced = dl.enforce(graph, 600, "E", limits=dog.limits).as_graph()
    fresh = dl.watchdog(study_of(enforced, 40, 2), 0.5).counts
    assert fresh["calls"] >= 80
    assert fresh["cut"] <= 0.1 * fresh["calls"]
    stalled = study_of(enforced, 1, 3, "stall_mid_stream=600:*").calls
    assert set(stalled.loc[stalled["seen_from"] == "client", "cut_by"]) == {"idle"}
