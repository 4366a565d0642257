"""Every block of the README is run: in the checkout, or by a package that was built and unpacked somewhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```\w+\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
# How a block begins, and where it is run.
PLACES = {
    "$ make compare": "checkout",
    "$ pip install": "package",
    "import docmind_lab": "package",
    "Choose ": "package",
    "from my_agent": "package",
}


def blocks_of(place: str) -> list[str]:
    return [block for block in BLOCKS if any(block.startswith(start) for start, at in PLACES.items() if at == place)]


def test_no_block_is_left_out() -> None:
    assert len(blocks_of("checkout") + blocks_of("package")) == len(BLOCKS) == len(PLACES)


def test_blocks_for_the_checkout_are_targets_of_make() -> None:
    (block,) = blocks_of("checkout")
    targets = re.findall(r"^\$ make (\w+)", block, re.MULTILINE)
    assert targets
    assert subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a shell that finds the built package, and not this checkout."""
    folder = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    command = folder / "docmind-lab"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m docmind_lab "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    path = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(folder / "site")}
    return {**os.environ, **path, "MPLBACKEND": "Agg"}


@pytest.mark.full
def test_blocks_for_a_package_give_the_printed_advice(environment: dict[str, str], tmp_path: Path) -> None:
    console, ask, answer, ship = blocks_of("package")
    lines = [line.removeprefix("$ ") for line in console.splitlines() if "pip install" not in line]
    (tmp_path / "ask.py").write_text(f"{ask}\n{ship}\nprint(agent, dl.__file__)", encoding="utf-8")
    script = "\n".join(["set -e", *lines, f'"{sys.executable}" ../ask.py'])
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.partition("Choose ")[0].startswith("In my-agent: 00_start_here.ipynb, my_agent.py")
    # In the README its lines are wrapped.
    assert " ".join(answer.split()) in " ".join(done.stdout.split())
    assert f"{ROOT}/" not in done.stdout, "the checkout ran it"
