"""The commands about studies, as a person types them: sweep, report, diff."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands_here import said

from docmind_lab.experiments.advice import Advice
from docmind_lab.findings.study import Study
from docmind_lab.views.cli import main

STUDY = """
repeats = 2
documents = "handbook"

[factors]
alternative = ["unguarded", "A", "B"]
decision_timeout_s = [10, 20]
"""


@pytest.fixture(scope="module")
def study_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "small.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def swept(study_file: Path) -> tuple[Path, str]:
    """The folder of a finished sweep, and what the command printed."""
    folder, printed = study_file.parent / "swept", io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        main(["sweep", str(study_file), "--out", str(folder)])
    assert not ended.value.code
    return folder, printed.getvalue()


def test_sweep_says_what_it_runs_fills_its_folder_and_prints_a_row_for_each_arm_and_timeout(
    swept: tuple[Path, str],
) -> None:
    folder, printed = swept
    assert "6 combinations × 2 repeats = 12 runs" in printed
    assert {path.name for path in folder.iterdir()} >= {
        "runs.parquet",
        "calls.parquet",
        "events.parquet",
        "manifest.json",
        "summary.md",
        "frontier.png",
    }
    rows = [line for line in printed.splitlines() if line.startswith(("control  unguarded", "A  coop", "B  hard"))]
    assert len(rows) == 6
    assert f"docmind-lab report {folder}" in printed
    assert Study.load(folder).manifest["complete"]


def test_a_finished_sweep_is_not_run_again(
    study_file: Path, swept: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = swept
    before = (folder / "runs.parquet").stat().st_mtime_ns
    code, out, _ = said(capsys, "sweep", str(study_file), "--out", str(folder), "--json")
    answer: dict[str, Any] = json.loads(out)
    assert (code, len(answer["alternatives"]), answer["failed_cells"]) == (0, 6, [])
    assert {row["decision_timeout_s"] for row in answer["alternatives"]} == {10.0, 20.0}
    assert (folder / "runs.parquet").stat().st_mtime_ns == before


def test_the_report_is_a_page_beside_the_study(swept: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "report", str(swept[0]))
    assert code == 0
    assert "report.html" in out
    assert "10 and 20 s decision timeout" in (swept[0] / "report.html").read_text(encoding="utf-8")


def test_a_study_against_itself_has_no_differences(swept: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "diff", str(swept[0]), str(swept[0]), "--json", "--fail-on-regression")
    assert code == 0
    assert json.loads(out)


def test_recommend_names_a_timeout_or_says_how_many_runs_are_missing(
    swept: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = swept
    code, printed, _ = said(capsys, "recommend", str(folder), "--target", "0.9")
    assert code == 1
    assert printed.startswith("Nothing to choose: no arm was shown to reach the target.")
    code, printed, _ = said(capsys, "recommend", str(folder), "--json")
    assert code == 1
    assert {row["arm"] for row in json.loads(printed)["alternatives"]} == {"A  cooperative", "B  hard timeout"}


def test_an_interrupted_recommend_ends_as_every_interrupted_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Advice("No advice yet.", study=Study.of([], {"interrupted": "3 of 9 runs"}))
    monkeypatch.setattr("docmind_lab.experiments.advice.recommend", lambda *_, **__: part)
    code, printed, error = said(capsys, "recommend", "--graph", "my_app:graph", "--inputs", "inputs.jsonl")
    assert (code, printed) == (130, "")
    assert "interrupted" in error
