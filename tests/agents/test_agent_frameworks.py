"""Agents of other frameworks, each called by a function of a question."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from agents_here import FRAMEWORKS, QUESTION
from doc_pages import section_of
from flat_compare import compare_by

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.own.programs.program import service_variables
from docmind_lab.views.cli.compare import compare
from docmind_lab.views.cli.fields_as_options import flag_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def runs_of(framework: str, decision_timeout_s: float, **options: Any) -> pd.DataFrame:
    pytest.importorskip(framework, reason="needs its extra")
    options = {"inputs": [QUESTION], "latencies": "typical/6", "agent": FRAMEWORKS[framework], **options}
    return compare_by(**options, decision_timeout_s=decision_timeout_s, runs=1).runs.set_index("alternative")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_agent_of_a_framework_answers_under_every_alternative_of_a_function(framework: str) -> None:
    runs = runs_of(framework, 30.0)
    assert list(runs.index) == ["unguarded", "cooperative", "hard_timeout", "async_cancellation", "hybrid"]
    assert set(runs["outcome"]) == {"answered"}
    # With one tool: a request before it, and one after it.
    assert set(runs["llm_calls"]) == {2}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_hang_is_left_at_the_budget_whatever_the_framework(framework: str) -> None:
    runs = runs_of(framework, 3.0, faults="hang:agent", alternatives="unguarded,A,B,C")
    assert runs.loc["unguarded", "outcome"] == "unfinished"
    assert set(runs.drop("unguarded")["outcome"]) == {"timed_out"}
    assert runs.drop("unguarded")["caller_overrun_s"].max() < 0.01
    assert runs.loc["hard_timeout", "work_overrun_s"] == 12.0, "the work goes on under B"
    assert runs.loc["cooperative", "work_overrun_s"] < 0.01, "A cuts the request"
    assert runs.loc["async_cancellation", "work_overrun_s"] == pytest.approx(0.0)


# ---- the page on other agents: its Python runs, and its commands are what the command line takes


ROOT = Path(__file__).parents[2]
PAGE = section_of("your-system.md", "Agents of other frameworks, and programs")


@pytest.mark.full
def test_the_python_of_the_page_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    first, second, program = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(first, names)
    assert set(names["study"].runs["outcome"]) == {"answered"}
    exec(second, names)
    assert set(names["study"].runs["alternative"]) == {"hard_timeout", "stop_flag"}
    # There is no such program here; the call itself is as it should be.
    with pytest.raises(ConfigurationError, match=r"no program 'node-of-nobody' is found"):
        exec(program.replace('"node"', '"node-of-nobody"'), names)


def test_the_commands_of_the_page_name_options_that_there_are() -> None:
    options = {flag_of(name) for name in inspect.signature(compare).parameters}
    for line in re.findall(r"^\$ docmind-lab compare (.*)$", PAGE, re.MULTILINE):
        for word in shlex.split(line):
            if word.startswith("--"):
                assert word in options


def test_the_page_names_every_variable_of_an_address() -> None:
    for name, value in service_variables("http://host").items():
        assert name in PAGE or not value.startswith("http") or name == "OPENAI_API_BASE", name
