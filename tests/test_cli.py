"""The command line as a person uses it: in this process, where the stack is imported already, and its script once."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pexpect
import pytest

from docmind_lab.findings.study import Study
from docmind_lab.network.live_endpoints import Check
from docmind_lab.views import machine_checks
from docmind_lab.views.cli import main
from docmind_lab.views.cli.console import console, prints_on_stderr
from docmind_lab.views.cli.printing import table_of

# Figures are drawn of what is done: some seconds, and many on a machine that does much else.
CTRL_C_PATIENCE_S = 120
COMMAND = [sys.executable, "-m", "docmind_lab"]
CONSOLE_SCRIPT = Path(sys.executable).parent / "docmind-lab"
FOLDER = {
    "calls.parquet",
    "events.parquet",
    "manifest.json",
    "overrun.png",
    "runs.parquet",
    "summary.md",
    "timeline.png",
}


Done = subprocess.CompletedProcess[str]


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs the command in this process. cwd: the folder to run it in."""

    def here(*words: str, cwd: Path | None = None, **environment: str) -> Done:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if cwd is not None:
            monkeypatch.chdir(cwd)
        # A person's first word is the command; there the program reads them from.
        monkeypatch.setattr(sys, "argv", ["docmind-lab", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(list(words), ended.value.code, said.out, said.err)

    return here


def test_a_setting_of_the_wrong_type_is_one_line_that_names_the_variable(run_here: Callable[..., Done]) -> None:
    done = run_here("compare", DOCMIND_AGENTS__DECISION_TIMEOUT="soon")
    assert done.returncode == 2
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT" in done.stderr
    assert done.stderr.strip().count("\n") == 0


@pytest.mark.parametrize("words", [(), ("compare",), ("sweep",), ("show",), ("doctor",), ("serve",), ("watch",)])
def test_help_is_quick_to_read_and_names_every_option_with_its_unit_or_default(
    words: tuple[str, ...], run_here: Callable[..., Done]
) -> None:
    done = run_here(*words, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout
    assert "…" not in done.stdout, "nothing is cut at 80 columns"
    if words == ("compare",):
        assert "What is put under the deadline" in done.stdout
        assert "DOCMIND_AGENTS__DECISION_TIMEOUT" in done.stdout
        assert "[default: 7]" in done.stdout
        assert "40 when left out" in " ".join(done.stdout.replace("│", " ").split())
        assert "in seconds" in done.stdout


def test_the_version_is_that_of_the_package_and_shells_can_complete_options(run_here: Callable[..., Done]) -> None:
    assert run_here("--version").stdout.strip() == f"docmind-lab {importlib.metadata.version('docmind_lab')}"
    assert "--install-completion" in run_here("--help").stdout


def test_a_port_in_use_is_named_with_the_remedy(run_here: Callable[..., Done]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_here("serve", "--port", str(port))
    assert done.returncode == 2
    assert f"port {port} on 127.0.0.1 cannot be used" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_command_shows_the_help() -> None:
    """By the script that is installed."""
    done = subprocess.run([CONSOLE_SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "Usage: docmind-lab" in done.stdout
    assert done.stderr == ""


@dataclass(frozen=True)
class Compared:
    """A folder in which A and B have been compared, the study's folder in it, and what was printed."""

    place: Path
    out: Path
    printed: str


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    place = tmp_path_factory.mktemp("compared")
    words = ["--runs", "1", "--latencies", "typical/40", "--decision-timeout", "0.4", "--out", "results/first"]
    with contextlib.chdir(place), contextlib.redirect_stdout(io.StringIO()) as printed:
        with pytest.raises(SystemExit) as ended:
            main(["compare", "--alternatives", "A,B", *words])
    assert not ended.value.code
    return Compared(place, place / "results" / "first", printed.getvalue())


@pytest.mark.wall
def test_show_draws_the_calls_of_a_run_the_deadline_and_what_went_on(
    compared: Compared, run_here: Callable[..., Done]
) -> None:
    done = run_here("show", "hard_timeout-1", cwd=compared.place)
    assert done.returncode == 0, done.stderr
    assert "B hard timeout" in done.stdout
    assert "deadline 0.4 s" in done.stdout
    assert "the caller returned" in done.stdout
    calls = [line for line in done.stdout.splitlines() if line.startswith("llm ")]
    assert calls
    assert all("━" in line or "▶" in line for line in calls)
    as_json = run_here("show", "hard_timeout-1", "--json", cwd=compared.place)
    assert len(json.loads(as_json.stdout)["calls"]) >= len(calls)


@pytest.mark.wall
def test_show_names_the_runs_there_are_when_it_does_not_find_one(
    compared: Compared, run_here: Callable[..., Done]
) -> None:
    done = run_here("show", "nothing-9", cwd=compared.place)
    assert done.returncode == 2
    assert "none of the 1 studies under results/ has a run 'nothing-9'" in done.stderr
    named = run_here("show", "1", "--study", "results/first", cwd=compared.place)
    assert "2 runs whose ids end with '1'" in named.stderr


def test_a_document_of_ones_own_that_is_not_text_is_named(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    (tmp_path / "broken.txt").write_bytes(b"\0\1nothing of the kind")
    refused = run_here("compare", "--documents", str(tmp_path), "--questions", "questions.jsonl")
    assert refused.returncode == 2
    assert "broken.txt is not text: save it as UTF-8 text, or move it out of the folder" in " ".join(
        refused.stderr.split()
    )


@pytest.mark.wall
def test_doctor_checks_versions_settings_and_endpoints_and_fails_for_a_dead_one(
    run_here: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    well = run_here("doctor", "--json")
    assert well.returncode == 0, well.stdout
    checks = {check["subject"]: check for check in json.loads(well.stdout)}
    assert checks["simulated services"]["verdict"] == "ok"
    assert checks["DOCMIND_AGENTS__DECISION_TIMEOUT"]["finding"] == "20.0 (default)"
    # They take seconds to start, and do so for the first one.
    monkeypatch.setattr(machine_checks, "_simulated_services", lambda: Check("simulated services", "ok", "start"))
    dead = run_here("doctor", DOCMIND_LLM__BASE_URL="http://127.0.0.1:9/v1", DOCMIND_LLM__API_KEY="sk-secret")
    assert dead.returncode == 1
    assert "FAILED" in dead.stdout
    assert "set DOCMIND_LLM__BASE_URL" in dead.stdout
    assert "sk-secret" not in dead.stdout


@pytest.mark.wall
def test_compare_fills_its_folder_and_prints_a_row_for_each_alternative(compared: Compared) -> None:
    assert "A cooperative and B hard timeout" in compared.printed
    assert "unguarded" not in compared.printed
    assert {path.name for path in compared.out.iterdir()} == FOLDER
    study = Study.load(compared.out)
    assert len(study.runs) == 2
    assert "0.4 s decision timeout" in (compared.out / "summary.md").read_text(encoding="utf-8")


@pytest.mark.wall
def test_json_is_all_that_is_printed(tmp_path: Path, run_here: Callable[..., Done]) -> None:
    words = ["--runs", "1", "--latencies", "typical/40", "--out", str(tmp_path / "o")]
    done = run_here("compare", "--alternatives", "A", "--json", *words, DOCMIND_AGENTS__DECISION_TIMEOUT="0.4")
    assert Study.load(tmp_path / "o").runs["decision_timeout_s"].tolist() == [0.4], "the setting is the default"
    printed = json.loads(done.stdout)
    assert [row["alternative"] for row in printed["alternatives"]] == ["cooperative"]


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.parametrize("term", ["xterm", "dumb"])
@pytest.mark.parametrize("command", ["compare", "sweep"])
def test_on_a_terminal_it_says_from_the_third_second_that_time_passes_and_ctrl_c_ends_it_in_a_line(
    command: str, term: str, tmp_path: Path
) -> None:
    study = tmp_path / "study.toml"
    study.write_text('repeats = 400\n[factors]\nalternative = "A"\n')
    out = tmp_path / "out"
    words = [command, *([str(study)] if command == "sweep" else ["--runs", "400"]), "--out", str(out)]
    env = {**os.environ, "TERM": term}
    patience = {"timeout": CTRL_C_PATIENCE_S, "encoding": "utf-8"}
    with pexpect.spawn(COMMAND[0], [*COMMAND[1:], *words], env=env, **patience) as terminal:
        # The stack may take seconds to import, and nobody has to wonder meanwhile.
        has_begun = terminal.expect(["starting", "measuring"]) == 1
        terminal.sendintr()
        terminal.expect(pexpect.EOF)
        said = terminal.before
    assert "interrupted" in said
    assert "Traceback" not in said
    assert "resource_tracker" not in said
    assert terminal.exitstatus == 130
    assert has_begun or not out.exists()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(24, "Too many open files"), "Too many open files; raise the limit of open files (ulimit -n 4096)"),
        (OSError(30, "Read-only file system", "/somewhere"), "Read-only file system: /somewhere; make it writable"),
        (MemoryError(), "out of memory; use fewer --workers"),
        (RuntimeError("can't start new thread"), "no further thread can be started; use fewer --workers"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    error: Exception, line: str, run_here: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("docmind_lab.views.cli.doctor._run_checks", refused)
    done = run_here("doctor")
    assert done.returncode == 1
    assert done.stderr.startswith(f"docmind-lab: {line}")
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_whose_name_is_not_utf8_is_one_line(run_here: Callable[..., Done], tmp_path: Path) -> None:
    done = run_here("compare", "--out", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert done.returncode == 2
    assert "is not UTF-8; choose another" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_terminal_that_knows_ascii_only_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SystemExit):
        main(["compare", "--alternatives", "×"])
    stream.flush()
    assert b"docmind-lab: unknown alternative" in written.getvalue()


def test_names_are_printed_as_they_are_whatever_they_look_like(capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = table_of(pd.DataFrame({"arm": ["http_500:book: [red]"]}), 80)
    out = console()
    for what in ("fault http_500:book: node [red]", table):
        out.print(what)
    printed = capsys.readouterr().out
    assert "fault http_500:book: node [red]" in printed
    assert "http_500:book: [red]" in printed.splitlines()[-1]


def test_what_a_users_code_prints_is_on_standard_error_and_the_report_on_standard_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with prints_on_stderr():
        print("from the graph")
        subprocess.run([sys.executable, "-c", "print('from a worker')"], check=True)
    print("the report")
    out, err = capfd.readouterr()
    assert (out, err.split("\n")[:2]) == ("the report\n", ["from the graph", "from a worker"])
