"""Programs in any language on the wall clock, ended by signals or by their own timeout."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from flat_compare import compare_by
from own_runs import QUESTION, services

import docmind_lab as dl
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import DEADLINE_VARIABLE, Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, measure
from docmind_lab.services.asgi_messages import request_of_run
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.own.programs import own_program
from docmind_lab.systems.workload_by_name import workload_kind

SUPPORT = Path(__file__).parents[1] / "support"
BUDGET_S = 1.5
# A process starts and ends, and a server notices its end, on two busy shared cores.
SLACK_S = 0.7


def python_program(habit: str, *more: str) -> list[str]:
    return [sys.executable, str(SUPPORT / "agent_program.py"), habit, *more]


def measured(
    command: list[str], alternative: str, *faults: str, question: Any = QUESTION, reserve_s: float | None = None
) -> MeasuredRun:
    """One run of a program, watched for twice its budget. reserve_s: in place of the one that the alternative has."""
    own = own_program(command, [question])
    comparison = Comparison(
        decision_timeout_s=BUDGET_S,
        runs=1,
        horizon_factor=2.0,
        alternatives=parse_alternatives(alternative),
        workload=own.workload,
        documents=Documents(own.corpus),
        clock="wall",
    )
    kind = workload_kind(own.workload)
    with services(*faults) as here:
        workload = kind.build(Surroundings(here.addresses, Settings()))
        try:
            (order,) = comparison.orders()
            if reserve_s is not None:
                order = dataclasses.replace(
                    order, alternative=dataclasses.replace(order.alternative, reserve_s=reserve_s)
                )
            return measure(order, workload, here.log)
        finally:
            workload.close()


@pytest.mark.wall
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_a_program_of_node_answers_by_plain_fetch_and_the_servers_log_has_its_request() -> None:
    run = measured(["node", str(SUPPORT / "agent_program.mjs")], "unguarded").run
    assert (run.outcome, run.llm_calls, run.workload) == ("answered", 1, "node agent_program.mjs")


@pytest.mark.wall
@pytest.mark.parametrize(("alternative", "reason"), [("B", "hard_timeout"), ("C", "cancelled")])
def test_a_program_that_hangs_is_ended_by_its_signal_at_the_budget(alternative: str, reason: str) -> None:
    run = measured(python_program("plain"), alternative, "hang:program").run
    assert (run.outcome, run.stop_reason) == ("timed_out", reason)
    assert run.caller_overrun_s < SLACK_S
    assert run.work_overrun_s < SLACK_S, "the server stops when its client is gone"
    assert not run.work_censored


@pytest.mark.full
@pytest.mark.wall
def test_a_program_without_a_limit_hangs_to_the_horizon_and_is_killed_there() -> None:
    before = set(_children())
    run = measured(python_program("plain"), "unguarded", "hang:program").run
    assert (run.outcome, run.work_overrun_s) == ("unfinished", BUDGET_S)
    assert set(_children()) <= before


@pytest.mark.full
@pytest.mark.wall
def test_a_program_that_ignores_sigterm_goes_on_and_sigkill_ends_it() -> None:
    deaf = measured(python_program("deaf"), "C", "hang:program").run
    assert (deaf.outcome, deaf.work_overrun_s) == ("unfinished", BUDGET_S)
    killed = measured(python_program("deaf"), "B", "hang:program").run
    assert killed.caller_overrun_s < SLACK_S


@pytest.mark.full
@pytest.mark.wall
def test_what_a_program_writes_when_it_is_told_to_stop_is_a_partial_answer() -> None:
    made = measured(python_program("handling"), "C", "hang:program")
    assert (made.run.outcome, made.outcome.answer) == ("partial", "a draft")


@pytest.mark.full
@pytest.mark.wall
def test_a_child_that_a_program_leaves_behind_is_work_that_goes_on_until_the_run_is_over() -> None:
    made = measured(python_program("forking"), "C")
    assert made.run.outcome == "answered"
    assert (made.run.work_censored, made.run.work_overrun_s) == (True, BUDGET_S)
    assert not [child for child in _children() if "time.sleep(600)" in child]


# ---- its deadline, in its environment and by two signals

RESERVE_S = 1.0


def signals_of(made: MeasuredRun) -> list[str]:
    return [event.detail["signal"] for event in made.events if event.event == "stop_requested"]


@pytest.mark.wall
def test_e_is_sigterm_at_the_reserve_and_what_the_program_hands_over_is_in_the_result() -> None:
    made = measured(python_program("handling"), "E", "hang:program", reserve_s=RESERVE_S)
    assert (made.run.outcome, made.run.stop_reason, made.outcome.answer) == ("partial", "cancelled", "a draft")
    assert BUDGET_S - RESERVE_S <= made.run.returned_at_s < BUDGET_S
    assert signals_of(made) == ["SIGTERM"]


@pytest.mark.wall
def test_e_is_sigkill_at_the_deadline_to_a_program_that_ignores_sigterm() -> None:
    made = measured(python_program("deaf"), "E", "hang:program", reserve_s=RESERVE_S)
    assert (made.run.outcome, made.run.stop_reason) == ("timed_out", "hard_timeout")
    assert signals_of(made) == ["SIGTERM", "SIGKILL"]
    assert BUDGET_S <= made.run.returned_at_s < BUDGET_S + SLACK_S
    assert made.run.work_overrun_s < SLACK_S


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.parametrize(("habit", "outcome"), [("leaving", "partial"), ("forking", "answered")])
def test_what_a_program_leaves_behind_ends_at_the_deadline_under_e(habit: str, outcome: str) -> None:
    faults = ["hang:program"] if outcome == "partial" else []
    made = measured(python_program(habit), "E", *faults, reserve_s=0.6)
    assert (made.run.outcome, made.run.work_censored) == (outcome, False)
    assert made.run.returned_at_s < BUDGET_S
    # To its end, and no longer.
    assert 0.0 <= made.run.work_overrun_s < SLACK_S
    assert made.run.quiescent_at_s >= BUDGET_S
    assert not [child for child in _children() if "time.sleep(600)" in child]


@pytest.mark.wall
@pytest.mark.parametrize("alternative", ["A", pytest.param("E", marks=pytest.mark.full)])
def test_a_program_that_knows_its_deadline_keeps_it_without_a_signal(alternative: str) -> None:
    made = measured(python_program("knowing"), alternative, "hang:program")
    assert (made.run.outcome, made.run.stop_reason, made.outcome.answer) == ("partial", "deadline", "a draft")
    assert made.run.returned_at_s < BUDGET_S
    assert signals_of(made) == []


@pytest.mark.wall
@pytest.mark.parametrize(("alternative", "is_told"), [("A", True), ("E", True), ("B", False), ("F", False)])
def test_the_deadline_in_the_environment_is_what_is_left_at_the_start(
    alternative: str, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As of a program that the lab itself is part of.
    monkeypatch.setenv(DEADLINE_VARIABLE, "99")
    assert Settings().log_level == "WARNING", "it is no setting, and none that is unknown"
    answer = measured([sys.executable, "-c", _TOLD], alternative).outcome.answer
    assert (BUDGET_S - 0.2 < float(answer) <= BUDGET_S) if is_told else answer == "nothing"


_TOLD = """
import os, urllib.request
urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/models").read()
print(os.environ.get("DOCMIND_DEADLINE_S", "nothing"))
"""


def test_a_reserve_that_leaves_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"reserve_s is 1\.5 and the time limit 1\.5 s"):
        measured(python_program("plain"), "E", reserve_s=BUDGET_S)


@pytest.mark.wall
def test_the_policy_wrap_up_says_when_sigterm_comes() -> None:
    made = measured(python_program("handling"), f"E+wrap_up:{RESERVE_S}s", "hang:program")
    assert (made.run.outcome, made.outcome.answer, signals_of(made)) == ("partial", "a draft", ["SIGTERM"])
    # Long before a tenth of the time is left.
    assert BUDGET_S - RESERVE_S <= made.run.returned_at_s < BUDGET_S - RESERVE_S + SLACK_S
    assert json.loads(made.run.alternative_options) == {"policies": "wrap_up:1s"}


@pytest.mark.wall
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("plain", "{timeout}"), id="in the command"),
        pytest.param(("plain",), id="in the environment", marks=pytest.mark.full),
    ],
)
def test_f_is_the_programs_own_timeout(arguments: tuple[str, ...]) -> None:
    run = measured(python_program(*arguments), "F", "hang:program").run
    assert (run.outcome, run.stop_reason) == ("timed_out", "node_timeout")
    assert run.caller_overrun_s < SLACK_S


@pytest.mark.wall
@pytest.mark.parametrize(
    ("habit", "message"),
    [
        ("failing", "it ended before it asked a model: exit code 1: no such thing as a model"),
        ("silent", "it answered, and no request of it reached the simulated services; have its client read OPENAI_"),
    ],
)
def test_a_program_that_never_asks_a_model_is_refused_and_not_measured(habit: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        measured(python_program(habit), "B")
    assert message in str(refused.value)


@pytest.mark.wall
def test_further_keys_of_a_question_come_as_json() -> None:
    made = measured([sys.executable, "-c", _ECHO], "unguarded", question={"question": "why?", "depth": 2})
    assert json.loads(made.outcome.answer) == {"question": "why?", "depth": 2}


_ECHO = """
import os, sys, urllib.request
urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/models").read()
print(sys.stdin.read())
"""


@pytest.mark.full
@pytest.mark.wall
def test_a_comparison_of_a_program_leaves_out_what_it_cannot_have(tmp_path: Path) -> None:
    study = dl.compare(dl.command(python_program("plain", "{timeout}"), [QUESTION]), 3.0, runs=2, out=tmp_path / "out")
    assert set(study.runs["alternative"]) == {"unguarded", "hard_timeout", "async_cancellation", "hybrid", "native"}
    assert set(study.runs["outcome"]) == {"answered"}
    assert "B is SIGKILL and C is SIGTERM" in study._repr_html_()
    # A command line may hold folders of this machine, and keys.
    assert str(SUPPORT) not in (tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.wall
def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text(json.dumps(QUESTION), encoding="utf-8")
    marked = tmp_path / "agent_program.py"
    shutil.copy(SUPPORT / "agent_program.py", marked)
    program = [sys.executable, "-W", "ignore", "-m", "docmind_lab", "compare", "--inputs", str(inputs)]
    program += ["--command", f"{sys.executable} {marked} plain", "--faults", "hang:program", "--decision-timeout", "30"]
    lab = subprocess.Popen([*program, "--out", str(tmp_path / "out"), "--json"], stderr=subprocess.DEVNULL)
    try:
        limit_at = time.monotonic() + 120
        while not _at_work(marked) and time.monotonic() < limit_at:
            time.sleep(0.1)
        assert _at_work(marked)
        lab.send_signal(signal.SIGINT)
        lab.wait(60)
    finally:
        lab.kill()
        lab.wait()
    assert not _at_work(marked)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternatives": "E+wrap_up:1s/keep_tools"}, "leave out wrap_up:1s/keep_tools, or name E+wrap_up:5s"),
        ({"alternatives": "A+wrap_up:1s"}, "no policy reaches the calls of another process; leave out wrap_up:1s"),
        ({"alternatives": "A+aware"}, "no policy reaches the calls of another process; leave out aware"),
        (
            {"alternatives": "E+limits:total=3"},
            "no policy reaches the calls of another process; leave out limits:total=3",
        ),
        (
            {"alternatives": "B:propagate"},
            "B hard timeout (propagate): a program is told its deadline, ended by signals",
        ),
        ({"alternatives": "D"}, "D stop flag: a program has no steps between which a flag could be looked at"),
        ({"alternatives": "B:drain"}, "(drain_on_timeout): a program is told its deadline, ended by signals"),
        ({"alternatives": "F:per_step"}, "F native (per_step): a program is told its deadline, ended by signals"),
        ({"command": []}, "command must be a list of texts"),
        ({"command": ["no-such-program"]}, "command: no program 'no-such-program' is found"),
        ({"command": 'node "agent'}, "cannot be read: No closing quotation"),
        ({"clock": "virtual"}, "command: another process runs in real time; use the wall clock"),
        ({"services": "own"}, "what a program sends to its own endpoints can be neither seen nor limited"),
        ({"max_requests": 3}, "record is not for a program"),
        ({"inputs": [{"prompt": "x"}]}, "inputs item 1: a question has the key question or input; this has prompt"),
    ],
)
def test_options_and_alternatives_that_a_program_cannot_have_are_refused(options: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"command": python_program("plain"), "inputs": [QUESTION], **options}
    with pytest.raises(ConfigurationError) as refused:
        compare_by(**asked)
    assert message in str(refused.value)


def test_a_run_that_its_path_names_is_tagged_like_one_that_its_headers_name() -> None:
    request = ServiceRequest("POST", "/run/r-1/42/program/v1/chat/completions", {"x-stainless-retry-count": "2"})
    tagged = request_of_run(request)
    assert tagged.path == "/v1/chat/completions"
    names = ("run-id", "seed", "role", "attempt")
    assert [tagged.tag(name) for name in names] == ["r-1", "42", "program", "3"]
    assert request_of_run(ServiceRequest("GET", "/v1/models")).path == "/v1/models"


def _children() -> list[str]:
    """Command lines of programs that these tests have started and that are still there."""
    return [line for line in _command_lines() if "agent_program.py" in line or "time.sleep(600)" in line]


def _at_work(program: Path) -> bool:
    return any(str(program) in line and "compare" not in line for line in _command_lines())


def _command_lines() -> list[str]:
    found = psutil.process_iter(["cmdline", "status"])
    return [" ".join(one.info["cmdline"] or ()) for one in found if one.info["status"] != psutil.STATUS_ZOMBIE]
