"""What a replay says in tables and sentences, and on the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import docmind_lab as dl
from docmind_lab.analysis.plots.what_ifs import what_if_frontier
from docmind_lab.analysis.traces.model import Span, TracedRun, Traces
from docmind_lab.analysis.traces.rules import rule_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.interfaces.cli import main


def runs_of_one_call(count: int, cut_at_s: float = math.inf) -> Traces:
    """Runs of one model call of 1, 2, 3 … seconds, each a session of its own."""
    runs, spans = [], []
    for number in range(1, count + 1):
        is_cut = number > cut_at_s
        until_s = min(float(number), cut_at_s)
        runs.append(
            TracedRun(
                trace_id=f"r{number}",
                session=f"s{number}",
                source="test",
                ended_at_s=math.nan if is_cut else until_s,
                observed_until_s=until_s,
                outcome="cut" if is_cut else "answered",
            )
        )
        end_s = math.nan if is_cut else until_s
        outcome = "open" if is_cut else "ok"
        spans.append(Span(f"r{number}", "c", "", "writer", "llm", 0.0, end_s, outcome=outcome))
    return Traces.of(runs, spans)


def test_the_smallest_timeout_is_one_that_surely_reaches_the_target() -> None:
    result = dl.what_if(runs_of_one_call(400), [100, 300, 390, 400])
    assert result.smallest(0.95) == 390
    assert result.smallest(0.7) == 300
    assert math.isnan(result.smallest(0.999))
    with pytest.raises(ConfigurationError, match="target must lie between 0 and 1"):
        result.smallest(1.0)


def test_how_to_enforce_it_is_judged_by_the_runs_that_reach_the_deadline() -> None:
    (_, choice, *_) = dl.what_if(runs_of_one_call(400), [390], "unguarded,A,B,D").sentences()
    # Only ten runs reach it.
    assert choice.startswith("Too few runs to choose how to enforce it: 10 of them reach one of these timeouts")
    (_, choice, *_) = dl.what_if(runs_of_one_call(400), [300, 390], "unguarded,A,B,D").sentences()
    assert "Where the deadline falls (100 of 400 runs at 300 s), choose A cooperative: servers work 0.00 s" in choice
    assert "B hard timeout leaves 50.5 s of work a run" in choice
    assert "D stop flag leaves 50.5 s of work a run, callers up to 100.0 s late" in choice


def test_with_too_few_runs_it_says_how_many_it_takes() -> None:
    first, *_ = dl.what_if(runs_of_one_call(40), [40]).sentences()
    assert "It takes 73 independent runs to be sure; there are 40 sessions." in first


def test_runs_cut_by_a_limit_are_said_to_be_estimated() -> None:
    result = dl.what_if(runs_of_one_call(100, cut_at_s=60), [50, 90])
    assert any(line.startswith("40 of 100 runs were cut") for line in result.sentences())
    assert not any("retried" in line for line in result.sentences())
    assert list(result.table()["observed"]) == ["100%", "60%"]


def test_past_what_was_watched_it_says_until_when_anything_is_known_and_what_to_record() -> None:
    result = dl.what_if(runs_of_one_call(100, cut_at_s=60), [50, 60, 90, 120], "unguarded,A,B")
    first, second, *_ = result.sentences()
    assert first.startswith("No decision timeout up to 60 s is sure to have 95% answered: with the longest it is 60.0%")
    assert second.startswith("Beyond 60 s the share is not known: 0 of 100 runs were watched longer.")
    assert "With 120 s it is anything from 50.0% to 100%." in second
    assert (
        "Record runs without a deadline (the control, unguarded), or give a tenth of the runs a longer limit" in second
    )
    assert list(result.table()["in time"]) == ["50.0%", "60.0%", "not known", "not known"]
    unknown = result.frame[result.frame["decision_timeout_s"] > 60]
    assert unknown[["share", "busy_after_s", "calls_after"]].isna().all(axis=None)
    assert math.isnan(result.smallest(0.95))
    assert result.smallest(0.4) == 50


def test_work_past_a_timeout_is_not_nothing_where_no_run_was_watched_past_it() -> None:
    lines = dl.what_if(runs_of_one_call(100, cut_at_s=60), [60, 90], "unguarded,A,B,D").sentences()
    assert any("0 of them reach one of these timeouts" in line for line in lines)
    (choice,) = [
        line
        for line in dl.what_if(runs_of_one_call(100, cut_at_s=60), [30], "unguarded,A,B,D").sentences()
        if line.startswith("Where the deadline falls")
    ]
    assert choice.endswith("Not all of their work was watched to its end, so these are lower bounds.")


def test_a_timeout_past_all_that_was_watched_has_no_share() -> None:
    first, *_ = dl.what_if(runs_of_one_call(100, cut_at_s=60), [90, 120]).sentences()
    assert first.startswith("Beyond 60 s the share is not known")


def test_the_figure_draws_no_share_where_none_is_known() -> None:
    upper, _ = what_if_frontier(dl.what_if(runs_of_one_call(100, cut_at_s=60), [30, 50, 90, 120], "unguarded,A"))
    assert upper.lines[0].get_ydata()[:2] == pytest.approx([0.3, 0.5])
    assert np.isnan(upper.lines[0].get_ydata()[2:]).all()
    assert "not known" in [text.get_text() for text in upper.texts]
    known, _ = what_if_frontier(dl.what_if(runs_of_one_call(100), [30, 50, 90, 120], "unguarded,A"))
    assert "not known" not in [text.get_text() for text in known.texts]


def test_the_runs_at_one_timeout_are_a_study() -> None:
    study = dl.what_if(runs_of_one_call(30), [10, 20], "unguarded,A,B").study(15)
    assert len(study.runs) == 90
    assert set(study.runs["clock"].astype("str")) == {"trace"}
    assert study.summary()["answered_in_time"].tolist() == [15, 15, 15]
    text = study.report()
    assert text.startswith("# test · 15 s decision timeout · 30 runs · recorded latencies · replayed from traces\n")
    assert "No agent ran: recorded runs were replayed" in text
    assert "DOCMIND_" not in text
    assert "≥ " not in text.partition("≥:")[0], "the traces show all of the work"


def test_without_timeouts_a_dozen_are_looked_at_up_to_the_longest_run() -> None:
    timeouts = dl.what_if(runs_of_one_call(97)).frame["decision_timeout_s"].unique()
    assert 8 <= len(timeouts) <= 13
    assert timeouts.max() >= 97


def test_the_price_is_that_of_late_tokens() -> None:
    traces = Traces.of(
        [TracedRun("r", "s", "test", 10.0, 10.0, "answered")],
        [Span("r", "c", "", "writer", "llm", 0.0, 10.0, first_byte_at_s=0.0, output_tokens=1000.0)],
    )
    frame = dl.what_if(traces, [5.0], "B,A", price=dl.Price(1.0, 10.0)).frame
    assert list(frame["tokens_after"]) == [500.0, 0.0]
    assert list(frame["cost_after"]) == pytest.approx([0.005, 0.0])


def test_rules_and_names_may_stand_in_one_list() -> None:
    frame = dl.what_if(runs_of_one_call(5), [3], [rule_of("A"), "B"]).frame
    assert frame["alternative"].tolist() == ["cooperative", "hard_timeout"]


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 0


def test_the_command_answers_from_a_file_of_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = runs_of_one_call(100).write(tmp_path / "traces.jsonl")
    command("what-if", str(source), "--timeouts", "50,99", "--plot", str(tmp_path / "w.png"))
    text = capsys.readouterr().out
    assert "100 runs of 100 sessions, 100 spans; 0 cut" in text
    assert (tmp_path / "w.png").stat().st_size > 10_000
    command("what-if", str(source), "--timeouts", "50,99", "--alternatives", "A,B", "--json")
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["in_time"] for row in rows] == [50, 99, 50, 99]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--timeouts", "soon"), "--timeouts must be seconds, as in 30,60,120"),
        (("--plot", "w.pdf"), "--plot must end in .png"),
        (("--alternatives", "A:reserve_first"), "virtual time"),
        (("--timeouts", "0"), "positive and finite"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    options: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = runs_of_one_call(3).write(tmp_path / "traces.jsonl")
    with pytest.raises(SystemExit) as ended:
        main(["what-if", str(source), *options])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
