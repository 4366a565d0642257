"""What the pages for contributors name exists, and the picture of the packages is the one that `make lint` holds."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["docs/architecture.md", "docs/glossary.md", "docs/traces.md", "CONTRIBUTING.md"]
MORE_PAGES = ["docs/enforce.md", "docs/hosts.md", "docs/on-the-wire.md"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_paths_exist(name: str) -> None:
    # A file that a trial added, and that was not kept, is marked "(new)".
    paths = re.findall(r"`([\w.-]+/[\w./-]*)`(?! \(new\))", text_of(name))
    assert paths
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "docmind_lab" / path).exists(), path


@pytest.mark.parametrize("name", [*PAGES, *MORE_PAGES])
def test_links_lead_to_files(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text_of(name)):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", [*PAGES, *MORE_PAGES])
def test_lines_are_wrapped(name: str) -> None:
    assert [line for line in text_of(name).splitlines() if len(line) > 120 and not line.startswith("|")] == []


def test_the_targets_and_names_that_contributing_tells_of_exist() -> None:
    page = text_of("CONTRIBUTING.md")
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    named = {word for line in re.findall(r"(?:`|\$ )make ([a-z -]+)", page) for word in line.split()}
    assert named
    assert named <= targets
    # "`NAME` of `path`", and "`NAME` in `path`": the name is in that file.
    for constant, path in re.findall(r"`([A-Z_]{5,})` (?:of|in)\s+`([\w./]+)`", page):
        assert re.search(rf"^{constant}\b", text_of(path), re.MULTILINE), constant


def layers() -> list[set[str]]:
    """The packages of each layer, from the top down, as import-linter is told of them."""
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    written = next(contract["layers"] for contract in contracts if "docmind_lab.core" in contract.get("layers", ()))
    return [{name.strip().removeprefix("docmind_lab.") for name in layer.split("|")} for layer in written]


def test_arrows_of_the_architecture_lead_down_the_layers() -> None:
    place = {name: number for number, layer in enumerate(layers()) for name in layer}
    picture = text_of("docs/architecture.md").split("```mermaid")[1].split("```")[0]
    chains = [line.strip().split(" --> ") for line in picture.splitlines() if "-->" in line]
    arrows = [pair for chain in chains for pair in pairwise(chain)]
    assert {name for arrow in arrows for name in arrow} == place.keys()
    assert all(place[above] < place[below] for above, below in arrows)


def test_the_table_of_the_architecture_has_a_row_for_each_package() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", text_of("docs/architecture.md"), re.MULTILINE)
    assert sorted(rows) == sorted(name for layer in layers() for name in layer)
