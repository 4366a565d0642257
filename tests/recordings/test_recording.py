"""What a recording's folder holds, and what a killed writer leaves of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_runs import logical_call, recorded_call, recorded_run, written
from sample_runs import sample_run

import docmind_lab as dl
from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.recordings import Recording
from docmind_lab.experiments.recordings.live_study import LiveStudy, Tape
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.taps import Traffic

RUN = recorded_run(
    recorded_call("llm/planner/0.0.1", 0.01, 0.5, input_tokens=90, output_tokens=12),
    recorded_call("llm/planner/0.0.1", 0.5, 2.0, attempt=2, end="cut", status=None, first_byte_at_s=None),
    recorded_call("retrieval//1.0.1", 2.0, 2.1, end="error", status=429, retry_after=(("retry-after", "2"),)),
)


def test_a_line_that_a_kill_has_torn_is_left_out_and_the_runs_before_it_stay(tmp_path: Path) -> None:
    line = RUN.to_json()
    folder = written(tmp_path / "r", f"{line}\n", line[: len(line) // 2])
    assert Recording.load(folder).runs == (RUN,)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"holds no recording; .*--record"),
        ({"manifest.json": '{"study_id": "compare-1"}', "runs.jsonl": ""}, "no recording that this version reads"),
        ({"manifest.json": '{"recording_format": 2}', "runs.jsonl": ""}, "upgrade docmind_lab"),
        ({"manifest.json": '{"recording_format": 1}', "runs.jsonl": "{\n" + RUN.to_json()}, r"runs\.jsonl, line 1"),
    ],
    ids=["an empty folder", "a study", "a newer one", "a broken line"],
)
def test_a_folder_without_a_recording_is_refused_with_the_remedy(
    files: dict[str, str], message: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        Recording.load(tmp_path)


def test_a_run_is_in_the_file_when_add_returns_and_the_manifest_says_it_is_not_complete(tmp_path: Path) -> None:
    measured = MeasuredRun(sample_run("cooperative", 7), (), (), Outcome("answered"))
    with LiveStudy.open(dl.Live(record=tmp_path / "r"), {"study_id": "s"}, {measured.run.run_id}) as live:
        live.record([measured])
        recording = Recording.load(tmp_path / "r")
        assert [run.seed for run in recording.runs] == [7]
        assert "not complete" in repr(recording)
        live.close()
    assert Recording.load(tmp_path / "r").manifest["complete"]


def test_a_folder_that_holds_a_recording_is_not_written_over(tmp_path: Path) -> None:
    folder = written(tmp_path / "r", f"{RUN.to_json()}\n")
    refused = pytest.raises(ConfigurationError, match="holds a study or a recording already")
    with refused, LiveStudy.open(dl.Live(record=folder), {}, ()):
        pass


@pytest.mark.parametrize("with_text", [False, True])
def test_texts_are_taped_only_when_they_are_asked_for(with_text: bool) -> None:
    tape = Tape({"run"}, with_text)
    tape.ended(
        _attempt("run"), Traffic(b'{"messages": ["secret"]}', {"content-type": "application/json"}, [b'"reply"'])
    )
    (said,) = tape.pop("run").values()
    assert ("reply" in json.dumps(said)) == with_text
    assert "secret" not in json.dumps(said)
    assert (said.get("digest", "") != "") == with_text


def test_a_warm_up_is_not_taped() -> None:
    tape = Tape({"run"})
    tape.ended(_attempt("warm-up-cooperative"), Traffic())
    assert tape.pop("warm-up-cooperative") == {}


def _attempt(run_id: str) -> Attempt:
    return Attempt(logical_call(run_id=run_id), 1, 0.0, ended_at=1.0, outcome="ok", status=200)
