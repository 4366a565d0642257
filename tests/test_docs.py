"""What the pages tell people to type, and what they name, exists; the picture of the packages is import-linter's."""

from __future__ import annotations

import hashlib
import importlib
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from doc_pages import section_of
from typer.testing import CliRunner

import docmind_lab
from docmind_lab.core.settings import variable_names
from docmind_lab.views.cli.app import app

ROOT = Path(__file__).parents[1]
# Pages for contributors, which name files.
PAGES = ["docs/architecture.md", "docs/glossary.md", "docs/measurements.md#Traces", "CONTRIBUTING.md"]
MORE_PAGES = ["docs/enforce.md", "docs/hosts.md", "docs/on-the-wire.md"]


def text_of(name: str) -> str:
    """Return the text of a file, or of one section of a page: "docs/measurements.md#Traces"."""
    path, _, heading = name.partition("#")
    return section_of(Path(path).name, heading) if heading else (ROOT / path).read_text(encoding="utf-8")


README = text_of("README.md")
MAIN_JOB = text_of("docs/main-job.md")
TARGETS = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist_and_lines_are_wrapped(name: str) -> None:
    # A file that a trial added, and that was not kept, is marked "(new)".
    paths = re.findall(r"`([\w.-]+/[\w./-]*)`(?! \(new\))", text_of(name))
    assert paths
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "docmind_lab" / path).exists(), path
    assert [line for line in text_of(name).splitlines() if len(line) > 120 and not line.startswith("|")] == []


@pytest.mark.parametrize("name", [*PAGES, *MORE_PAGES, "README.md", "CHANGELOG.md"])
def test_links_and_pictures_exist(name: str) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text_of(name)):
        assert ((ROOT / name).parent / target).exists(), target


def test_what_programs_in_strings_and_on_pages_import_from_the_package_exists() -> None:
    """An import in a string is seen by no linter, and the test that runs it may be one of the full count."""
    folders = ("tests", "docs", "notebooks", "examples", "benchmarks", "surveys")
    files = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".ipynb"}
    ]
    imports = {
        (statement[1], name)
        for path in [ROOT / "README.md", *files]
        for statement in re.finditer(r"from (docmind_lab[\w.]*) import ([\w, *]+)", path.read_text(encoding="utf-8"))
        for name in re.findall(r"(?:^|, )(\w+|\*)", statement[2])
    }
    assert len(imports) > 500
    assert [pair for pair in sorted(imports) if not exists(*pair)] == []


def exists(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ImportError:
        return False


def test_options_of_commands_in_the_readme_exist() -> None:
    for command, words in re.findall(r"^\$ docmind-lab ([\w-]+)(.*?)(?:#.*)?$", README + MAIN_JOB, re.MULTILINE):
        shown = CliRunner().invoke(app, [command, "--help"], terminal_width=200)
        assert shown.exit_code == 0, shown.output
        for option in re.findall(r"--[a-z-]+", words):
            assert option in shown.output, f"{command} {option}"


def test_settings_in_the_table_are_settings() -> None:
    named = set(re.findall(r"`(DOCMIND_[A-Z_]+)`", MAIN_JOB))
    assert named
    assert named <= set(variable_names())


def test_the_sample_of_the_main_job_is_what_it_prints() -> None:
    sample = re.search(r"```text\n(DocMind supervisor.*?)\n\nIn results/", MAIN_JOB, re.DOTALL)
    assert sample is not None
    assert sample[1] == text_of("tests/snapshots/ordinary.txt").partition("\nIn FOLDER")[0].strip("\n")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_that_a_page_names_are_in_the_makefile(name: str) -> None:
    named = {word for line in re.findall(r"(?:`|\$ )make ([a-z -]+)", text_of(name)) for word in line.split()}
    assert named
    assert named <= TARGETS


def test_names_that_contributing_tells_of_exist() -> None:
    page = text_of("CONTRIBUTING.md")
    # "`NAME` of `path`", and "`NAME` in `path`": the name is in that file.
    for constant, path in re.findall(r"`([A-Z_]{5,})` (?:of|in)\s+`([\w./]+)`", page):
        assert re.search(rf"^{constant}\b", text_of(path), re.MULTILINE), constant


def test_a_trial_touched_at_most_three_files_of_the_package() -> None:
    trials = [part.split("\n## ")[0] for part in text_of("CONTRIBUTING.md").split("*Trial.*")[1:]]
    assert trials
    assert {len(re.findall(r"^- `docmind_lab/", trial, re.MULTILINE)) for trial in trials} <= {1, 2, 3}


def test_the_architecture_has_the_packages_of_import_linter_and_its_arrows_lead_down() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if "docmind_lab.core" in contract.get("layers", ()))
    names = [[name.strip().removeprefix("docmind_lab.") for name in layer.split("|")] for layer in layers]
    place = {name: number for number, layer in enumerate(names) for name in layer}
    page = text_of("docs/architecture.md")
    picture = page.split("```mermaid")[1].split("```")[0]
    chains = [line.strip().split(" --> ") for line in picture.splitlines() if "-->" in line]
    arrows = [pair for chain in chains for pair in pairwise(chain)]
    assert {name for arrow in arrows for name in arrow} == place.keys()
    assert all(place[above] < place[below] for above, below in arrows)
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(place)


def test_the_version_is_one_wherever_it_stands() -> None:
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    newest = re.search(r"^## (\S+)", text_of("CHANGELOG.md"), re.MULTILINE)
    cited = re.search(r"^version: (\S+)$", text_of("CITATION.cff"), re.MULTILINE)
    assert newest is not None
    assert cited is not None
    assert {version, newest[1], cited[1]} == {docmind_lab.__version__}


def test_every_diagram_has_the_picture_that_the_site_shows() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    found = [text for page in pages for text in re.findall(r"```mermaid\n(.*?)\n```", page, re.DOTALL)]
    names = {f"d{hashlib.sha256(text.encode()).hexdigest()[:12]}" for text in found}
    assert {path.stem for path in (ROOT / "docs" / "images" / "diagrams").iterdir()} == names
