"""The house: its size, what stands on what, where public names lead, what an alternative touches, where helpers are."""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from eighth_alternative import ROW, Eighth
from langgraph.graph import START, StateGraph
from matplotlib.text import Text
from often import often
from packaging.requirements import Requirement

import docmind_lab as dl
from docmind_lab.alternatives import ALTERNATIVES
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.core.alternative_catalogue import CATALOGUE, options_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.lint.lint_run import doctor
from docmind_lab.views import plots
from docmind_lab.views.plots.look import colour_of

PACKAGE = Path(dl.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
PACKAGES = {
    "core",
    "tables",
    "statistics",
    "virtual_time",
    "network",
    "services",
    "alternatives",
    "systems",
    "experiments",
    "findings",
    "views",
}
# Public path → where its names are at home.
PUBLIC_PATHS = {
    "docmind_lab.graphs": "docmind_lab.systems.docmind.graphs",
    "docmind_lab.telemetry": "docmind_lab.views.telemetry",
    "docmind_lab.testing": "docmind_lab.experiments.assertions",
}


def test_the_package_has_eleven_packages_and_public_names_beside_them() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    public = {path.split(".")[1] for path in PUBLIC_PATHS}
    assert there == PACKAGES | public | {"__init__", "__main__"}


@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_a_public_path_hands_on_the_names_of_its_home(path: str) -> None:
    public, home = importlib.import_module(path), importlib.import_module(PUBLIC_PATHS[path])
    shared = [name for name in public.__all__ if hasattr(home, name)]
    assert shared
    assert all(getattr(public, name) is getattr(home, name) for name in shared)
    # It defines nothing of its own.
    tree = ast.parse(Path(str(public.__file__)).read_text(encoding="utf-8"))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert set(defined) <= {"__getattr__"}


STACK = ("langgraph", "langchain_core", "openai", "qdrant_client", "httpx")
ABSENT = {
    "docmind_lab.core.clock": ("asyncio", "langgraph"),
    "docmind_lab": ("langchain", "langgraph", "openai", "qdrant_client", "pandas", "matplotlib", "numpy"),
    "docmind_lab.views.reports": STACK,
    "docmind_lab.findings.study": STACK,
    "docmind_lab.alternatives": ("pandas", "matplotlib"),
    "docmind_lab.alternatives.enforcement": ("pandas", "matplotlib", "pyarrow", "ipywidgets", "langchain", "openai"),
    "docmind_lab.network": ("pandas", "matplotlib", "langgraph"),
}


# Often: what a production service imports. Each takes an interpreter of its own.
@pytest.mark.parametrize("module", often(ABSENT, "docmind_lab.alternatives.enforcement", "docmind_lab.core.clock"))
def test_importing_a_package_loads_nothing_that_it_does_not_need(module: str) -> None:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(ABSENT[module]) & set(loaded)


def modules() -> Iterator[tuple[str, Path]]:
    for path in PACKAGE.rglob("*.py"):
        parts = [PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts]
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported(path: Path, known: set[str]) -> Iterator[str]:
    """Every module of the package that is imported: at the top, within a function, or for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE.name):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else str(node.module)


def test_a_package_that_lists_its_modules_lists_those_there_are() -> None:
    for init in PACKAGE.rglob("__init__.py"):
        listing = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        listed = set(re.findall(r"\b(\w+\.py)\b", listing))
        if re.search(r"^\w+\.py\b", listing, flags=re.MULTILINE) and init.parent.name != "plots":
            there = {path.name for path in init.parent.glob("*.py") if not path.name.startswith("__")}
            assert listed == there, f"{init.parent.name}: {sorted(listed ^ there)}"


# What there is at most, in lines of Python. It is lowered with every cut, and never raised.
MOST_LINES = {PACKAGE: 65_734, TESTS: 51_419}


@pytest.mark.parametrize("folder", MOST_LINES, ids=lambda folder: folder.name)
def test_the_house_does_not_grow_again(folder: Path) -> None:
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in folder.rglob("*.py"))
    assert lines <= MOST_LINES[folder]


def test_what_travels_in_a_context_is_in_few_variables() -> None:
    """What requests are held to is one object: deadline, policy, hold and meter are not put in force one by one."""
    variables = [re.findall(r"^\w+: ContextVar\[", path.read_text("utf-8"), re.MULTILINE) for path in MODULES]
    assert sum(map(len, variables)) <= 4


def test_no_modules_import_each_other_in_a_circle() -> None:
    # All but the public names at the top, which are imported when they are used.
    paths = {name: path for name, path in modules() if name != PACKAGE.name}
    graph = {name: set(imported(path, set(paths))) & set(paths) - {name} for name, path in paths.items()}
    in_order = list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle
    assert set(in_order) == set(paths)


def test_a_module_is_found_by_its_name() -> None:
    """No two modules have one, but the public paths at the top and those that Python names."""
    names = Counter(path.stem for path in MODULES if path.parent != PACKAGE and not path.stem.startswith("__"))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_every_requirement_has_a_version_that_it_does_not_go_beyond() -> None:
    """None is taken in a version that nobody has tried."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["project"]["optional-dependencies"].values()
    listed = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(requirement for group in groups for requirement in group),
    ]
    operators = {text: {each.operator for each in Requirement(text).specifier} for text in listed}
    assert len(listed) > 40
    assert [text for text, used in operators.items() if not used & {"<", "<=", "=="}] == []


def test_whatever_in_tests_is_no_test_module_and_no_conftest_is_in_support() -> None:
    helpers = [path for path in TESTS.rglob("*.py") if not path.name.startswith("test_") and path.name != "conftest.py"]
    assert {str(path.relative_to(TESTS)) for path in helpers} == {f"support/{path.name}" for path in helpers}
    assert not list((TESTS / "support").glob("test_*.py"))


def test_no_test_module_and_no_conftest_is_imported_by_another() -> None:
    paths = list(TESTS.rglob("*.py"))
    alone = {path.stem for path in paths if path.name.startswith("test_")} | {"conftest"}
    # Parsed only where one is named at all: all of them take seconds.
    named = re.compile(rf"\b(?:{'|'.join(alone)})\b")
    paths = [path for path in paths if named.search(path.read_text(encoding="utf-8"))]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
                parts = {part for name in (module, *(alias.name for alias in node.names)) for part in name.split(".")}
                assert not parts & alone, f"{path.name}: {parts & alone}"


def test_each_variant_has_the_options_that_the_catalogue_says() -> None:
    for level, entry in CATALOGUE.items():
        for variant in entry.variants:
            (alternative,) = parse_alternatives(f"{level}:{variant}")
            assert options_json(alternative) == options_of(level, variant)
        assert set(entry.mistakes) <= set(entry.variants)


def test_an_eighth_alternative_is_a_row_and_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, Eighth.name, ROW)
    assert [each.name for each in parse_alternatives(None)] == list(ALTERNATIVES)
    assert list(ALTERNATIVES)[-1] == Eighth.name
    study = dl.compare(decision_timeout_s=8.0, alternatives="A,H", world=dl.World(latencies="typical"), runs=2)
    assert "H  eighth" in study.summary().index
    assert ROW.why_work_goes_on in study.report()
    assert ROW.price in study.report()
    assert colour_of("eighth") == ROW.colour
    texts = plots.timeline(study).get_figure().findobj(match=Text)
    assert any("H  eighth" in text.get_text() for text in texts)
    graph = StateGraph(dict).add_node("only", lambda state: state).add_edge(START, "only").compile()
    with pytest.raises(ConfigurationError, match="name at least one of A,B,C,D,E,F,H"):
        doctor(dl.graph(graph, ["a"]), alternatives="")
