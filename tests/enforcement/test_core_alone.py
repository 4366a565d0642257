"""The core alone: what a service installs enforces deadlines, and says what the rest needs (enforce.md 5)."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {"beautifulsoup4": "bs4", "markdown-it-py": "markdown_it", "pillow": "PIL"}

_WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Without())
"""


def installed_by(requirements: list[str]) -> set[str]:
    """The packages that the requirements bring, and those that these bring."""
    found: set[str] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        if requirement.name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found.add(requirement.name)
            left += [Requirement(text) for text in requires(requirement.name) or ()]
    return found


def modules_only_in(extra: str, *beside: str) -> set[str]:
    """The modules that an extra brings, and the core with other extras does not."""
    extras = PROJECT["optional-dependencies"]
    listed = {Requirement(text).name for text in extras[extra]} - {"docmind_lab"}
    others = installed_by([*PROJECT["dependencies"], *(text for name in beside for text in extras[name])])
    return {MODULES.get(name, re.sub("-", "_", name)) for name in listed - others}


def python_without(modules: set[str], code: str) -> subprocess.CompletedProcess[str]:
    program = _WITHOUT.format(absent=modules) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)


def python_with_the_core_alone(code: str) -> subprocess.CompletedProcess[str]:
    return python_without(modules_only_in("lab") | modules_only_in("systems"), code)


@pytest.mark.full
def test_a_graph_is_enforced_with_the_core_alone() -> None:
    code = """
import asyncio
from langgraph.graph import StateGraph, START
import docmind_lab as dl

async def slow(state):
    await asyncio.sleep(30)

agent = dl.enforce(StateGraph(dict).add_node(slow).add_edge(START, "slow").compile(), 0.1, "E")
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


@pytest.mark.full
def test_a_graph_of_ones_own_is_examined_and_measured_without_what_the_labs_systems_need() -> None:
    code = """
import httpx
from langgraph.graph import StateGraph, START
import docmind_lab as dl

def look_up(state):
    asked = {"model": "m", "messages": [{"role": "user", "content": state["text"]}]}
    answer = httpx.post("https://api.openai.com/v1/chat/completions", json=asked, timeout=None).json()
    return {"text": answer["choices"][0]["message"]["content"]}

builder = StateGraph(dict).add_node(look_up).add_edge(START, "look_up")
graph = dl.graph(builder.compile(), [{"text": "How deep is the harbour?"}])
study = dl.compare(graph, 60, alternatives="control,A,E", runs=4, workers=1)
print(sorted(set(study.runs["outcome"])))
print(dl.doctor(graph).keeps)
dl.plots.overrun(study)
for system in (dl.docmind(), dl.peers()):
    try:
        dl.compare(system, runs=1)
    except dl.errors.ConfigurationError as error:
        print(error)
try:
    dl.MultiAgentCoordinator
except ModuleNotFoundError as error:
    print(error)
"""
    absent = modules_only_in("systems", "lab") | modules_only_in("peers", "lab")
    assert {"openai", "langchain", "langchain_openai", "qdrant_client", "bm25s"} <= absent
    done = python_without(absent, code)
    assert done.returncode == 0, done.stderr
    outcomes, is_ok, docmind, peers, coordinator = done.stdout.splitlines()
    assert (outcomes, is_ok) == ("['answered']", "True")
    assert docmind.startswith("workload 'supervisor' needs the package")
    assert docmind.endswith("pip install 'docmind_lab[lab,systems]'")
    assert peers.endswith("pip install 'docmind_lab[lab,peers]'")
    assert coordinator.endswith("pip install 'docmind_lab[lab,systems]'")
