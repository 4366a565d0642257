"""The house: its size, what stands on what, where public names lead, what an alternative touches, where helpers are."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import importlib.metadata
import operator
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
from packaging.utils import canonicalize_name

import docmind_lab as dl
from docmind_lab.alternatives import ALTERNATIVES
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.core.alternative_catalogue import CATALOGUE, options_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.doctor.doctor_run import doctor
from docmind_lab.services.faults import FAULT_KINDS
from docmind_lab.systems.own import unsimulated
from docmind_lab.views import plots
from docmind_lab.views.plots.look import colour_of

PACKAGE = Path(dl.__file__).parent
TESTS = Path(__file__).parent
EXAMPLES = TESTS.parent / "examples"
MODULES = sorted(PACKAGE.rglob("*.py"))
# From the bottom up.
ROOMS = (
    "core",
    "tables",
    "virtual_time",
    "statistics",
    "network",
    "findings",
    "services",
    "alternatives",
    "systems",
    "experiments",
    "views",
)
PACKAGES = set(ROOMS)
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
    "docmind_lab; docmind_lab.compare(docmind_lab.graph('my_app:graph'), alternatives='A', runs=1)": (
        *("qdrant_client", "bm25s", "matplotlib", "tqdm.auto"),
        *("docmind_lab.systems.docmind.docmind_system", "docmind_lab.systems.docmind.retrieval"),
    ),
}


# Often: what a production service imports. Each takes an interpreter of its own.
@pytest.mark.parametrize("module", often(ABSENT, "docmind_lab.alternatives.enforcement", "docmind_lab.core.clock"))
def test_importing_a_package_loads_nothing_that_it_does_not_need(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=EXAMPLES)
    loaded = done.stdout.split()
    assert not set(ABSENT[module]) & set(loaded)


def modules() -> Iterator[tuple[str, Path]]:
    for path in PACKAGE.rglob("*.py"):
        parts = [PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts]
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


# Three tests look at each module.
@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(path: Path, known: set[str]) -> Iterator[str]:
    """Every module of the package that is imported: at the top, within a function, or for types only."""
    for node in nodes_of(path):
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


# What there is at most, in lines of Python. It is lowered with every cut, and raised by a new capability alone.
MOST_PACKAGES = 70
MOST_LINES = {PACKAGE: 66_973, TESTS: 51_998}


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


def test_a_small_module_has_more_than_one_user() -> None:
    """But for what has a file each: alternatives, scripts of systems, and the graph that an enforced agent becomes."""
    paths, users = dict(modules()), Counter[str]()
    for name, path in paths.items():
        users.update(set(imported(path, set(paths))) - {name})
    small = {name for name, path in paths.items() if path.read_text(encoding="utf-8").count("\n") < 60}
    lonely = {name for name in small if users[name] == 1 and not paths[name].name.startswith("__")}
    of_alternatives = {entry.home.partition(":")[0] for entry in CATALOGUE.values()}
    scripts = {name for name in lonely if name.endswith("_script")}
    assert lonely - of_alternatives - scripts == {"docmind_lab.alternatives.enforcement.enforced_graph"}


def test_no_text_names_a_module_of_a_package_above() -> None:
    """But for alternatives and a workload's own tables, which are found by name when somebody asks for them."""
    ranks = {room: rank for rank, room in enumerate(ROOMS)}
    upward = set()
    for name, path in modules():
        room = name.split(".")[1] if name != PACKAGE.name else "views"
        for node in nodes_of(path):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            place = re.fullmatch(rf"{PACKAGE.name}\.(\w+)\.[\w.]+(:\w+)?", text)
            if place and ranks.get(place[1], 0) > ranks.get(room, len(ROOMS)):
                upward.add(name)
    assert upward == {"docmind_lab.core.alternative_catalogue", "docmind_lab.findings.study"}


def test_every_requirement_has_a_version_that_it_does_not_go_beyond() -> None:
    """None is taken in a version that nobody has tried."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["project"]["optional-dependencies"].values()
    listed = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(requirement for group in groups for requirement in group if not requirement.startswith("docmind_lab[")),
    ]
    operators = {text: {each.operator for each in Requirement(text).specifier} for text in listed}
    assert len(listed) > 40
    assert [text for text, used in operators.items() if not used & {"<", "<=", "=="}] == []


def test_the_lab_installs_no_more_packages_than_it_did() -> None:
    """What its own systems need beside it is in an extra: Qdrant's client alone brings seven."""
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [Requirement(text) for text in [*project["dependencies"], *project["optional-dependencies"]["lab"]]]
    needed: set[tuple[str, str]] = set()
    while asked:
        requirement = asked.pop()
        for extra in {"", *requirement.extras}:
            if (requirement.name, extra) not in needed:
                needed.add((requirement.name, extra))
                listed = map(Requirement, importlib.metadata.requires(requirement.name) or ())
                asked += [each for each in listed if each.marker is None or each.marker.evaluate({"extra": extra})]
    assert len({canonicalize_name(name) for name, _ in needed}) <= MOST_PACKAGES


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
    with pytest.raises(ConfigurationError, match="name at least one, such as A,B,C,D,E,F,H"):
        doctor(dl.graph(graph, ["a"]), alternatives="")


# ---- what is to stay few


def test_tests_in_real_time_and_processes_of_tests_do_not_grow_in_number() -> None:
    """A wait in real time is for one mechanism each; a process of its own imports the stack for seconds."""
    texts = [path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    assert sum(text.count("mark.wall") for text in texts) <= 155
    assert sum(text.count("sys.executable") for text in texts) <= 35


def test_details_of_events_are_read_from_their_text_in_no_further_place() -> None:
    reading = re.compile(r'json\.loads\((?:\w+\.)?detail\b|json\.loads\(\w+\["detail"\]')
    assert sum(len(reading.findall(path.read_text(encoding="utf-8"))) for path in MODULES) <= 18


def test_every_name_of_grpc_by_which_its_calls_are_refused_exists() -> None:
    """No adapter holds gRPC, so a release that renames something must be noticed here."""
    pytest.importorskip("grpc")
    names = [(module, name) for module, name, _ in unsimulated._COMPILED if module.startswith("grpc")]
    assert len(names) > 10
    for module, name in names:
        assert callable(operator.attrgetter(name)(importlib.import_module(module))), (module, name)


def test_one_class_is_called_verdict_and_nothing_by_a_bare_participle() -> None:
    defined = re.compile(r"^ *(?:async )?(?:def|class) (\w+)", re.MULTILINE)
    names = Counter(name for path in MODULES for name in defined.findall(path.read_text(encoding="utf-8")))
    assert names["Verdict"] == 1
    assert not {"said", "told", "kept", "found", "asked"} & names.keys()


# A word of other things too, or a fault that is judged as well as played.
NAMED_ELSEWHERE = {"none", "empty", "hang", "trickle", "endless", "http_500", "rate_limit", "retrieval_503"}


@pytest.mark.parametrize("kind", [kind for kind in FAULT_KINDS if kind not in NAMED_ELSEWHERE])
def test_a_fault_is_named_in_three_modules_at_most(kind: str) -> None:
    assert 1 < sum(f'"{kind}"' in path.read_text(encoding="utf-8") for path in MODULES) <= 3
