"""The reference: every public name is on one of its pages, documents its parameters, and has an example that runs."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import pytest

import docmind_lab as dl
from docmind_lab import findings, graphs, telemetry, testing
from docmind_lab.views import plots

ROOT = Path(__file__).parents[1]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "reference").glob("*.md"))}
SHOWN = [name for text in PAGES.values() for name in re.findall(r"^::: (\S+)", text, re.MULTILINE)]
# An example follows its name, and the options of how that is shown; one that follows no name is the page's.
EXAMPLE = re.compile(r"(?:^::: (\S+)\n(?:    [^\n]*\n)*\n)?^```python\n(.*?)```", re.MULTILINE | re.DOTALL)
EXAMPLES: Final = {name or page: lines for page, text in PAGES.items() for name, lines in EXAMPLE.findall(text)}
START: Final = EXAMPLES.pop("index")
MODULES = {"agreement", "errors", "findings", "plots"}
PUBLIC: Final[dict[str, Any]] = {
    **{f"docmind_lab.{name}": getattr(dl, name) for name in sorted(set(dl.__all__) - MODULES)},
    **{f"docmind_lab.graphs.{name}": getattr(graphs, name) for name in graphs.__all__},
    **{f"docmind_lab.testing.{name}": getattr(testing, name) for name in testing.__all__},
    **{f"docmind_lab.telemetry.{name}": getattr(telemetry, name) for name in telemetry.__all__},
    **{f"docmind_lab.views.plots.{name}": getattr(plots, name) for name in plots.__all__},
    **{f"docmind_lab.findings.{name}": getattr(findings, name) for name in findings.__all__},
    "docmind_lab.findings.agreement.agreement": dl.agreement.agreement,
}
CALLABLE = {name: value for name, value in PUBLIC.items() if callable(value)}
# Seconds each: on the wall clock, with services in a process, or all figures as pictures.
LONG = {
    f"docmind_lab.{name}"
    for name in ("pressure", "MultiAgentCoordinator", "findings.agreement.agreement", "views.plots.save_study")
}


def callables() -> Iterator[tuple[str, Any, str]]:
    """Every public callable, and the public methods that its class defines, with the words that document it."""
    for name, value in {**CALLABLE, **{f"errors.{each.__name__}": each for each in error_classes()}}.items():
        classes = value.__mro__ if inspect.isclass(value) else ()
        yield name, value, "\n".join(words_of(each, inspect.getmodule(value)) for each in classes or [value])
        for method, defined in vars(value).items() if classes else ():
            function = getattr(defined, "__func__", defined)
            if inspect.isfunction(function) and not method.startswith("_"):
                # What overrides a method is documented by it too.
                versions = [vars(each)[method] for each in classes if method in vars(each)]
                yield f"{name}.{method}", function, "\n".join(words_of(each, value) for each in versions)


def words_of(value: Any, home: Any) -> str:
    """Return a docstring, with that of the callable of the same class or module whose parameters it says it has."""
    words = inspect.getdoc(value) or ""
    others = re.findall(r"\bparameters are those\s+of\s+`(\w+)`", words)
    return "\n".join([words, *(words_of(getattr(home, other), home) for other in others)])


def error_classes() -> list[type[BaseException]]:
    found = [value for value in vars(dl.errors).values() if inspect.isclass(value)]
    return [value for value in found if value.__module__ == dl.errors.__name__]


def parameters_of(value: Any) -> list[str]:
    try:
        return list(inspect.signature(value).parameters)
    except ValueError:  # an exception or a TypedDict without an initialiser of its own
        return []


def names_without(shown: list[str], names: dict[str, Any]) -> list[str]:
    there = [pkgutil.resolve_name(name) for name in shown]
    return [name for name, value in names.items() if not any(value is each for each in there)]


def test_every_public_name_is_on_one_page() -> None:
    assert len(set(SHOWN)) == len(SHOWN)
    assert names_without(SHOWN, PUBLIC) == []


def test_every_public_callable_documents_every_parameter() -> None:
    missing = {}
    for name, value, words in callables():
        taken = [each for each in parameters_of(value) if each not in {"self", "cls", "args", "kwargs", "message"}]
        # "name: …", or several names at once: "low, high: …".
        missing[name] = [each for each in taken if not re.search(rf"\b{each}(, \w+)*( and \w+)?: ", words)]
    assert {name: each for name, each in missing.items() if each} == {}


def test_every_public_callable_has_an_example() -> None:
    assert names_without([name for name in EXAMPLES if name in SHOWN], CALLABLE) == []


@pytest.fixture(scope="module")
def start() -> dict[str, Any]:
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "examples"))
        exec(compile(START, "docs/reference/index.md", "exec"), names)
        yield names
    plt.close("all")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.full if each in LONG else ()) for each in EXAMPLES]
)
def test_an_example_runs(name: str, start: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    names = dict(start)
    exec(compile(EXAMPLES[name], name, "exec"), names)
    for line in re.findall(r"^(\S.*?)  # (.+)$", EXAMPLES[name], re.MULTILINE):
        told, value = line[0].partition(" = ")[0], line[1]
        if re.match(r"""["'({\[\d]|True|False|None""", value):
            assert eval(told, names) == ast.literal_eval(value), line
