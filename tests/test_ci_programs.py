"""What the Makefile and CI run besides pytest: an order that can be repeated, a browser that may be missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from longest_first import LONGEST

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = [f"notebooks/{number:02}.ipynb" for number in range(12)]


def shuffled(seed: str = "") -> tuple[list[str], str]:
    """The order, and what was said of it."""
    program = ROOT / "tests" / "support" / "shuffled.py"
    environment = {**os.environ, "SHUFFLE_SEED": seed}
    done = subprocess.run(
        [sys.executable, str(program), *NOTEBOOKS], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.split(), done.stderr


def test_a_random_order_has_each_notebook_once_and_can_be_repeated_by_its_seed() -> None:
    order, said = shuffled()
    assert sorted(order) == NOTEBOOKS
    seed = re.fullmatch(r"in the order of SHUFFLE_SEED=(\d+)\n", said)
    assert seed is not None
    assert shuffled(seed[1])[0] == order


def test_another_seed_is_another_order() -> None:
    assert shuffled("1")[0] != shuffled("2")[0]


def test_the_files_that_are_begun_first_are_there() -> None:
    there = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert [name for name in LONGEST if there.count(name) != 1] == []


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"chromium": "", "id": "echo 0"}, ": "),
        ({"id": "echo 0"}, "none, and no apt-get to install one; the tests in a browser are skipped"),
        ({"id": "echo 1000", "apt-get": ""}, "none, and only root can install one; the tests in a browser are skipped"),
        (
            {"id": "echo 0", "apt-get": "exit 100"},
            "none, and apt-get could not install chromium; the tests in a browser are skipped",
        ),
    ],
    ids=["there", "no apt", "no root", "no network"],
)
def test_ci_goes_on_without_a_program_and_says_why_there_is_none(
    there: dict[str, str], said: str, tmp_path: Path
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    for name, line in there.items():
        file = tmp_path / name
        file.write_text(f"#!{bash}\n{line}\n", encoding="utf-8")
        file.chmod(0o755)
    done = subprocess.run(
        [bash, str(ROOT / ".ci" / "browser")], capture_output=True, text=True, env={"PATH": str(tmp_path)}
    )
    assert done.returncode == 0
    assert said in done.stdout
    assert done.stdout.count("\n") == 1
