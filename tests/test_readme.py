"""What README.md tells people to type exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docmind_lab.core.settings import variable_names
from docmind_lab.interfaces.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_make_targets_in_the_readme_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", README))
    assert named <= targets
    assert {"setup", "compare", "lab", "test", "test-all", "lint", "typecheck", "bench", "docs", "clean"} <= targets


def test_options_of_commands_in_the_readme_exist() -> None:
    for command, words in re.findall(r"^\$ docmind-lab ([\w-]+)(.*?)(?:#.*)?$", README, re.MULTILINE):
        shown = CliRunner().invoke(app, [command, "--help"], terminal_width=200)
        assert shown.exit_code == 0, shown.output
        for option in re.findall(r"--[a-z-]+", words):
            assert option in shown.output, f"{command} {option}"


def test_settings_in_the_readme_are_settings() -> None:
    known = variable_names()
    for variable in re.findall(r"`(DOCMIND_[A-Z_]+)`", README):
        assert variable in known


@pytest.mark.parametrize("name", ["README.md", "docs/architecture.md", "CHANGELOG.md"])
def test_links_and_pictures_exist(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_sample_is_what_the_main_job_prints() -> None:
    sample = re.search(r"```text\n(DocMind supervisor.*?)\n\nIn results/", README, re.DOTALL)
    printed = (ROOT / "tests/snapshots/ordinary.txt").read_text(encoding="utf-8")
    assert sample is not None
    assert sample[1] == printed.partition("\nIn FOLDER")[0].strip("\n")
