"""`docmind-lab crash-test`: what it is given, how wide its lines are, and how Ctrl-C ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.experiments.batch.workers import Workers, processes
from docmind_lab.experiments.crash_test import crash_test
from docmind_lab.interfaces.cli import main

GRAPHS = Path(__file__).parents[1] / "support"
# A shell that starts the tests in the background has them ignore Ctrl-C, and their children after them.
LISTENING_TO_CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from docmind_lab.interfaces.cli import main
main()
"""
PATIENCE_S = 120.0


@pytest.fixture(autouse=True)
def _beside_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GRAPHS)


def ended(words: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(str(end.value.code or 0))


def given_to(graph: str, tmp_path: Path, *words: str) -> list[str]:
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text('{"ship": "Meridian"}\n')
    return ["crash-test", "--graph", graph, "--inputs", str(inputs), *words]


def test_the_command_gives_a_graph_its_context_configuration_and_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--alternatives", "A", "--no-kill", "--runs", "6", "--workers", "1", "--json"]
    words = given_to("given_graph.py:make_asking", tmp_path, *few)
    given = ["--context", '{"captain": "Ada"}', "--config", '{"configurable": {"berth": "7"}}']
    assert ended([*words, *given, "--resume", "yes"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["trials"] == 6
    assert report["judged"]["resume"] == 6
    assert ended([*words, "--context", "Ada"]) == 2
    assert "--context is not JSON" in capsys.readouterr().err


def services_in(folder: Path, row: str) -> Path:
    """Write a file with one simulated endpoint."""
    path = folder / "services.toml"
    path.write_text(f'[[endpoint]]\n{row}\njson = {{ status = "paid", report = "well" }}\n')
    return path


@pytest.mark.parametrize(("row", "effects"), [("", True), ("effect = false\n", False)])
def test_the_key_of_an_endpoint_says_whether_it_changes_something(row: str, effects: bool, tmp_path: Path) -> None:
    services = services_in(tmp_path, f'host = "pay.example.com"\npath = "/charges"\nmethod = "POST"\n{row}')
    report = crash_test(
        "planted_double_charge.py:broken", [{"order": "17"}], endpoints=services, runs=6, workers=1, shrink=False
    )
    assert any("No side effect was seen" in note for note in report.notes) is not effects


def test_a_get_that_is_declared_to_change_something_is_an_effect(tmp_path: Path) -> None:
    services = services_in(tmp_path, 'host = "slow.example.com"\npath = "/report"\neffect = true\nlatency = 1.0\n')
    report = crash_test(
        "planted_file_left.py:mended", [{"about": "x"}], alternatives="E", endpoints=services, runs=20, workers=1
    )
    assert "GET slow.example.com/report is done twice" in {finding.what for finding in report.findings}


def test_lines_end_at_80_columns_in_a_terminal_of_80(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("docmind_lab.interfaces.cli.console._WIDTH", 80)
    words = given_to("planted_double_charge.py:broken", tmp_path, "--alternatives", "A", "--no-kill", "--runs", "9")
    Path(words[words.index("--inputs") + 1]).write_text('{"order": "17"}\n')
    assert ended([*words, "--endpoints", "crash_services.toml", "--workers", "1"]) == 1
    shown = capsys.readouterr().out
    test = shown[shown.index("import pytest") : shown.index("\nbegins ")]
    others = shown.replace(test, "").splitlines()
    assert max(map(len, others)) <= 80
    # The code is to be pasted, so its lines stay whole.
    compile(textwrap.dedent("      " + test), "pasted", "exec")


@pytest.mark.full
def test_worker_processes_have_one_order_of_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with Workers(processes(1)) as workers:
        assert workers.submit(os.getenv, "PYTHONHASHSEED").result() == "0"


@pytest.mark.full
def test_ctrl_c_ends_a_crash_test_with_its_workers_and_writes_nothing(tmp_path: Path) -> None:
    steps, tests = tmp_path / "steps", tmp_path / "test_found.py"
    words = given_to("given_graph.py:make_waiting", tmp_path, "--workers", "2", "--tests", str(tests))
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING_TO_CTRL_C, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TEST_STEPS_FILE": str(steps)},
        start_new_session=True,
    )
    try:
        until(lambda: process.poll() is not None or (steps.exists() and len(pids_in(steps)) > 1))
        # As a terminal does: to every process of the group.
        os.killpg(process.pid, signal.SIGINT)
        said, complaints = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 130, complaints
    assert "interrupted" in complaints
    assert "Traceback" not in complaints
    assert said == ""
    assert sorted(tmp_path.iterdir()) == sorted([steps, tmp_path / "inputs.jsonl"])
    until(lambda: not any(map(lives, pids_in(steps))))


def pids_in(steps: Path) -> set[int]:
    return {int(line) for line in steps.read_text().splitlines() if line}


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(holds: Any) -> None:
    """Wait until something holds that another process brings about."""
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.05)
