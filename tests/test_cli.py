"""The command line as a person uses it: in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docmind_lab.cli import main
from docmind_lab.study import Study

COMMAND = [sys.executable, "-m", "docmind_lab"]
# A shell that starts the tests in the background has them ignore Ctrl-C, and their children after them.
LISTENING_TO_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from docmind_lab.cli import main
main()
"""
FOLDER = {
    "calls.parquet",
    "events.parquet",
    "manifest.json",
    "overrun.png",
    "runs.parquet",
    "summary.md",
    "timeline.png",
}


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (
            ("compare", "--decision-timeout", "nan"),
            "decision timeout must be a finite number of seconds above 0, not nan",
        ),
        (("compare", "--decision-timeout", "-1"), "not -1.0"),
        (("compare", "--alternatives", "Z"), "unknown alternative 'Z'"),
        (("compare", "--profile", "typcal"), "Did you mean 'typical'?"),
        (("compare", "--fault", "hnag"), "unknown fault 'hnag'; did you mean 'hang'?"),
        (("compare", "--clock", "sun"), "unknown clock 'sun'"),
        (("compare", "--out", os.devnull + "/x"), "choose another folder"),
        (("serve", "--port", "99999"), "port 99999"),
    ],
)
def test_bad_usage_is_one_line_that_names_the_thing_and_exit_code_2(
    words: tuple[str, ...], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, where the stack is imported already."""
    monkeypatch.setattr(sys, "argv", ["docmind-lab", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 2
    assert named in said.err
    assert len([line for line in said.err.splitlines() if line.startswith("docmind-lab: ")]) == 1
    assert said.out == ""


def test_a_setting_of_the_wrong_type_is_one_line_that_names_the_variable() -> None:
    done = run("compare", DOCMIND_AGENTS__DECISION_TIMEOUT="soon")
    assert done.returncode == 2
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT" in done.stderr
    assert done.stderr.strip().count("\n") == 0


@pytest.mark.parametrize("words", [(), ("compare",), ("serve",)])
def test_help_is_quick_to_read_and_names_every_option_with_its_unit_or_default(words: tuple[str, ...]) -> None:
    done = run(*words, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout
    if words == ("compare",):
        assert "DOCMIND_AGENTS__DECISION_TIMEOUT" in done.stdout
        assert "[default: 8]" in done.stdout
        assert "in seconds" in done.stdout


@pytest.mark.wall
def test_compare_fills_its_folder_and_prints_a_row_for_each_alternative(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--runs", "1", "--profile", "typical/40", "--decision-timeout", "0.4", "--out", str(out)]
    done = run("compare", "--alternatives", "A,B", *words)
    assert done.returncode == 0, done.stderr
    assert "A  cooperative" in done.stdout
    assert "B  hard timeout" in done.stdout
    assert "unguarded" not in done.stdout
    assert {path.name for path in out.iterdir()} == FOLDER
    study = Study.load(out)
    assert len(study.runs) == 2
    assert "0.4 s decision timeout" in (out / "summary.md").read_text(encoding="utf-8")


@pytest.mark.wall
def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    words = ["--runs", "1", "--profile", "typical/40", "--out", str(tmp_path / "o")]
    done = run("compare", "--alternatives", "A", "--json", *words, DOCMIND_AGENTS__DECISION_TIMEOUT="0.4")
    assert Study.load(tmp_path / "o").runs["decision_timeout_s"].tolist() == [0.4], "the setting is the default"
    printed = json.loads(done.stdout)
    assert [row["alternative"] for row in printed["alternatives"]] == ["cooperative"]


@pytest.mark.wall
def test_interrupted_it_ends_cleanly_and_keeps_the_finished_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--runs", "200", "--alternatives", "A,B", "--profile", "typical/40", "--decision-timeout", "0.4"]
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING_TO_CTRL_C, "compare", *words, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = ""
    assert process.stderr is not None
    limit_at = time.monotonic() + 60
    while "measuring" not in seen and time.monotonic() < limit_at:
        seen += process.stderr.read(1)
    process.send_signal(signal.SIGINT)
    try:
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "interrupted; the finished runs are in" in rest
    assert "Traceback" not in rest
    study = Study.load(out)
    assert 0 < len(study.runs) < 400
    assert study.manifest["complete"] is False
