"""The page on other agents: its Python runs, and its commands are what the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.workloads.agents.frameworks import FRAMEWORKS
from docmind_lab.workloads.programs.program import service_variables

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/other-agents.md").read_text(encoding="utf-8")


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
    options = (ROOT / "docmind_lab/interfaces/cli/compare.py").read_text(encoding="utf-8")
    for line in re.findall(r"^\$ docmind-lab compare (.*)$", PAGE, re.MULTILINE):
        for word in shlex.split(line):
            if word.startswith("--"):
                assert f"    {word.removeprefix('--').replace('-', '_')}: " in options, word


def test_the_page_names_every_variable_of_an_address_and_every_framework() -> None:
    for name, value in service_variables("http://host").items():
        assert name in PAGE or not value.startswith("http") or name == "OPENAI_API_BASE", name
    assert len(re.findall(r"^\| (?!framework|control|[BCDF] |\||---).*`.*\|$", PAGE, re.MULTILINE)) >= len(
        set(FRAMEWORKS.values())
    )
