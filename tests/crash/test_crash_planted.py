"""Planted defects are found, each by its invariant, and nothing is found on their corrected twins."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import docmind_lab as dl
from docmind_lab.experiments.crash_test import CrashReport, crash_test

GRAPHS = Path(__file__).parents[1] / "support"
PLANTED = sorted(path.stem for path in GRAPHS.glob("planted_*.py"))
# Written before the crash test was tried on them.
HELD_BACK = sorted(path.stem for path in GRAPHS.glob("held_back_*.py"))
# What takes a second or two; all are in the full count.
QUICK = ["planted_double_charge", "planted_lock_held"]


@pytest.fixture(autouse=True)
def _beside_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GRAPHS)


def module_of(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, GRAPHS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report_on(name: str, which: str, runs: int | None) -> CrashReport:
    options: dict[str, Any] = {
        "world": dl.World(endpoints="crash_services.toml"),
        "runs": runs,
        "workers": 1,
        "shrink": False,
    }
    return crash_test(dl.graph(f"{name}.py:{which}", module_of(name).INPUTS), **options)


def found_in(name: str, runs: int | None) -> set[str]:
    return {finding.invariant for finding in report_on(name, "broken", runs).findings}


def verdict_on_twin(name: str, runs: int | None) -> tuple[list[str], bool]:
    report = report_on(name, "mended", runs)
    return [finding.what for finding in report.findings], report.holds


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_defect_is_found_within_few_runs(name: str) -> None:
    assert module_of(name).INVARIANT in found_in(name, runs=28)


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_found_on_its_corrected_twin(name: str) -> None:
    assert verdict_on_twin(name, runs=12) == ([], True)


@pytest.mark.full
@pytest.mark.parametrize("name", [*PLANTED, *HELD_BACK])
def test_every_planted_defect_is_found(name: str) -> None:
    assert module_of(name).INVARIANT in found_in(name, runs=None)


@pytest.mark.full
@pytest.mark.parametrize("name", [*PLANTED, *HELD_BACK])
def test_nothing_is_found_on_any_corrected_twin(name: str) -> None:
    assert verdict_on_twin(name, runs=None) == ([], True)


def test_each_defect_is_planted_in_both_corpora() -> None:
    invariants = {"begins", "conversation", "resume", "effects", "checkpoint", "leftovers"}
    for names, count in ((PLANTED, 10), (HELD_BACK, 7)):
        assert len(names) == count
        assert {module_of(name).INVARIANT for name in names} == invariants
