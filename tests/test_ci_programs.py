"""What CI runs besides pytest: the longest files first, and programs that may be missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from longest_first import LONGEST

ROOT = Path(__file__).resolve().parent.parent


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
