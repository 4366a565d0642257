"""The core alone: what a service installs enforces deadlines, and says what the rest needs (enforce.md 5)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What the core's own requirements bring with them, and tests run beside.
BROUGHT = {"numpy"}
MODULES = {"beautifulsoup4": "bs4", "markdown-it-py": "markdown_it", "pillow": "PIL"}

_WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
"""


def only_in_the_lab() -> set[str]:
    """The modules that the extra `lab` brings and the core does not."""
    core = {Requirement(text).name for text in PROJECT["dependencies"]}
    lab = {Requirement(text).name for text in PROJECT["optional-dependencies"]["lab"]}
    return {MODULES.get(name, re.sub("-", "_", name)) for name in lab - core - BROUGHT}


def python_with_the_core_alone(code: str) -> subprocess.CompletedProcess[str]:
    program = _WITHOUT.format(absent=only_in_the_lab()) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.full
def test_a_graph_is_enforced_with_the_core_alone() -> None:
    code = """
import asyncio
from typing import TypedDict
from langgraph.graph import StateGraph, START, END
import docmind_lab as dl

class State(TypedDict):
    n: int

async def slow(state):
    await asyncio.sleep(30)

builder = StateGraph(State)
builder.add_node("slow", slow)
builder.add_edge(START, "slow")
builder.add_edge("slow", END)
agent = dl.enforce(builder.compile(), 0.1, "E")
print(asyncio.run(agent.ainvoke({"n": 1})).outcome, agent.check())
dl.install(["httpx"])
with dl.deadline(1):
    assert dl.remaining_s() > 0
import docmind_lab.alternatives.enforcement.wire.asgi
"""
    done = python_with_the_core_alone(code)
    assert (done.returncode, done.stdout) == (0, "timed_out ()\n"), done.stderr


@pytest.mark.full
@pytest.mark.parametrize("name", ["compare", "sweep", "plots", "Study"])
def test_what_the_core_lacks_names_the_extra(name: str) -> None:
    done = python_with_the_core_alone(f"import docmind_lab as dl\ndl.{name}")
    said = done.stderr.strip().splitlines()[-1]
    assert re.fullmatch(
        rf"ModuleNotFoundError: docmind_lab\.{name} needs \w+: pip install 'docmind_lab\[lab\]'", said
    ), done.stderr


def test_the_command_says_where_it_is() -> None:
    done = python_with_the_core_alone("import docmind_lab.views.cli")
    assert done.returncode == 1
    assert done.stderr == "docmind-lab: the commands are in the extra lab; run: pip install 'docmind_lab[lab]'\n"
