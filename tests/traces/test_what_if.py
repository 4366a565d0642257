"""What a replay says in tables and sentences, and on the command line."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from commands_here import said
from golden import assert_golden
from timed_runs import timed_run

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.tables.traces.trace_tables import Span, TracedRun, Traces
from docmind_lab.views.plots.what_ifs import what_if_frontier


def runs_of_one_call(count: int, cut_at_s: float = math.inf) -> Traces:
    """Runs of one model call of 1, 2, 3 … seconds, each a session of its own."""
    return calls_of([timed_run(number, float(number), watched_s=cut_at_s) for number in range(1, count + 1)])


def steps_of(runs: list[TracedRun]) -> Traces:
    return Traces.of(runs, [Span(each.trace_id, "s", "", "agent", "step", 0.0, each.observed_until_s) for each in runs])


def calls_of(runs: list[TracedRun], when_cut: str = "open") -> Traces:
    """One model call in each run. when_cut: the outcome of one that was under way as its run was cut."""
    outcomes = {"cut": when_cut, "answered": "ok"}
    ends_s = [each.ended_at_s if outcomes[each.outcome] == "open" else each.observed_until_s for each in runs]
    calls = [
        Span(each.trace_id, "c", "", "writer", "llm", 0.0, end_s, outcome=outcomes[each.outcome])
        for each, end_s in zip(runs, ends_s, strict=True)
    ]
    return Traces.of(runs, calls)


def cut_at_the_limit(count: int, limit_s: float) -> Traces:
    """Runs of one call, each of which ends as the limit cuts it."""
    return calls_of([timed_run(number, float(number), watched_s=limit_s) for number in range(1, count + 1)], "cut")


def test_the_smallest_timeout_is_one_that_surely_reaches_the_target() -> None:
    result = dl.what_if(runs_of_one_call(400), [100, 300, 390, 400])
    assert result.smallest(0.95) == 390
    assert result.smallest(0.7) == 300
    assert math.isnan(result.smallest(0.999))
    with pytest.raises(ConfigurationError, match="target must lie between 0 and 1"):
        result.smallest(1.0)


FOUR = "unguarded,A,B,D"
TEN = [timed_run(number, 10.0 * (number + 1)) for number in range(10)]
CUT_SOON = [timed_run(number, math.inf, watched_s=5.0) for number in range(20, 23)]
WHAT_IFS = {
    "the runs that reach the deadline judge how to enforce it; ten are too few": (runs_of_one_call(400), [390], FOUR),
    "a hundred are enough": (runs_of_one_call(400), [300, 390], FOUR),
    "one run": (runs_of_one_call(1), [1], "unguarded"),
    "too few runs to be sure": (runs_of_one_call(40), [40], "unguarded"),
    "runs that a limit cut are estimated": (runs_of_one_call(100, cut_at_s=60), [50, 90], "unguarded"),
    "past what was watched": (runs_of_one_call(100, cut_at_s=60), [50, 60, 90, 120], "unguarded,A,B"),
    "work past a timeout that no run was watched past": (runs_of_one_call(100, cut_at_s=60), [60, 90], FOUR),
    "calls that the limit of their run cut": (cut_at_the_limit(100, 60.0), [30], FOUR),
    "work that was not watched to its end": (runs_of_one_call(100, cut_at_s=60), [30], FOUR),
    "nothing was watched so long": (runs_of_one_call(100, cut_at_s=60), [90, 120], "unguarded"),
    "no call was recorded": (steps_of(TEN), [50, 100], "unguarded,A,B"),
    "runs cut before a timeout are not said to have failed calls": (
        calls_of([*TEN, *CUT_SOON]),
        [50],
        "unguarded,A,B",
    ),
}


def test_what_is_said_of_another_timeout() -> None:
    texts = {}
    for name, (traces, timeouts_s, alternatives) in WHAT_IFS.items():
        result = dl.what_if(traces, timeouts_s, alternatives)
        rows = result.frame.drop(columns=["alternative", "alternative_options"])
        table = result.table().to_string(index=False)
        texts[name] = "\n".join([*result.sentences(), table, "", rows.to_csv(index=False, float_format="%.4g")])
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


@pytest.mark.parametrize("name", ["past what was watched", "a hundred are enough", "no call was recorded"])
def test_the_figure_draws_the_shares_that_are_known(name: str) -> None:
    traces, timeouts_s, alternatives = WHAT_IFS[name]
    result = dl.what_if(traces, timeouts_s, alternatives)
    upper, lower = what_if_frontier(result)
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), result.curve["share"])
    assert ("not known" in [text.get_text() for text in upper.texts]) == result.curve["share"].isna().any()
    if "no call" in name:
        assert lower.texts[0].get_text() == "not known: no call was recorded with its start"


def test_a_file_of_an_older_version_is_read_without_what_nothing_reads(tmp_path: Path) -> None:
    traces = runs_of_one_call(1)
    file = traces.write(tmp_path / "traces.jsonl")
    run = json.loads(file.read_text())
    run |= {"succeeded": 1.0, "good_from_s": 0.5, "spans": [{**run["spans"][0], "after": '["s"]'}]}
    file.write_text(json.dumps(run))
    again = Traces.read(file)
    assert (again.runs.equals(traces.runs), again.spans.equals(traces.spans)) == (True, True)


def test_the_runs_at_one_timeout_are_a_study() -> None:
    study = dl.what_if(runs_of_one_call(30), [10, 20], "unguarded,A,B").study(15)
    assert len(study.runs) == 90
    assert set(study.runs["clock"].astype("str")) == {"trace"}
    assert study.summary()["answered_in_time"].tolist() == [15, 15, 15]
    text = study.report()
    assert text.startswith("## test · 15 s decision timeout · 30 runs · recorded latencies · replayed from traces\n")
    assert "No agent ran: recorded runs were replayed" in text
    assert "DOCMIND_" not in text
    assert "≥ " not in text.partition("≥:")[0], "the traces show all of the work"


def test_runs_of_several_conditions_are_said_to_count_together() -> None:
    traces, faults = runs_of_one_call(4), ("none", "none", "hang", "hang")
    labels = [json.dumps({"fault": fault, "question_id": str(number)}) for number, fault in enumerate(faults)]
    mixed = dataclasses.replace(traces, runs=traces.runs.assign(labels=labels))
    said_of_them = "Runs of several conditions count together: fault hang and none. Traces.only(…) keeps those of one."
    assert dl.what_if(mixed, [2], "A").finding().words[1] == said_of_them
    assert "several conditions" not in repr(mixed.only(traces.runs["trace_id"][:2]))


def test_without_timeouts_a_dozen_are_looked_at_up_to_the_longest_run() -> None:
    timeouts = dl.what_if(runs_of_one_call(97)).frame["decision_timeout_s"].unique()
    assert 8 <= len(timeouts) <= 13
    assert timeouts.max() >= 97


def test_the_command_answers_from_a_file_of_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = runs_of_one_call(100).write(tmp_path / "traces.jsonl")
    code, text, _ = said(capsys, "what-if", source, "--timeouts", "50,99", "--plot", tmp_path / "w.png")
    assert (code, "100 runs of 100 sessions, 100 spans; 0 cut" in text) == (0, True)
    assert (tmp_path / "w.png").stat().st_size > 10_000
    _, text, _ = said(capsys, "what-if", source, "--timeouts", "50,99", "--alternatives", "A,B", "--json")
    assert [row["in_time"] for row in json.loads(text)["rows"]] == [50, 99, 50, 99]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--timeouts", "soon"), "--timeouts must be seconds, as in 30,60,120"),
        (("--plot", "w.pdf"), "--plot must end in .png"),
        (("--alternatives", "A:per_read"), "virtual time"),
        (("--timeouts", "0"), "positive and finite"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    options: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = runs_of_one_call(3).write(tmp_path / "traces.jsonl")
    code, _, error = said(capsys, "what-if", source, *options)
    assert (code, len(error.strip().splitlines()), named in error) == (2, 1, True)
