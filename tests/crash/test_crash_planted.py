"""Planted defects are found, each by its invariant, and nothing is found on their corrected twins."""

from __future__ import annotations

from pathlib import Path

import held_back
import planted
import pytest
from twins import Twins

import docmind_lab as dl
from docmind_lab.experiments.crash_test import CrashReport, crash_test

GRAPHS = Path(__file__).parents[1] / "support"
# Reference without its end → a defect and its correction. The second were written before the crash test was tried on
# them.
ALL = {
    f"{module.__name__}.py:{name}": each
    for module in (planted, held_back)
    for name, each in vars(module).items()
    if isinstance(each, Twins)
}
# What takes a second or two; all are in the full count.
QUICK = ["planted.py:double_charge", "planted.py:lock_held"]


@pytest.fixture(autouse=True)
def _beside_the_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GRAPHS)


def report_on(name: str, which: str, runs: int | None) -> CrashReport:
    system = dl.graph(f"{name}.{which}", ALL[name].inputs)
    world = dl.World(endpoints="crash_services.toml")
    return crash_test(system, world=world, runs=runs, workers=1)


# Every cut point of what is mended, where nothing may be found.
EVERY = [pytest.param(name, 60, None, marks=pytest.mark.full) for name in ALL]


@pytest.mark.parametrize(("name", "runs", "runs_of_twin"), [*((name, 28, 12) for name in QUICK), *EVERY])
def test_a_planted_defect_is_found_and_nothing_on_its_corrected_twin(
    name: str, runs: int | None, runs_of_twin: int | None
) -> None:
    assert ALL[name].invariant in {finding.invariant for finding in report_on(name, "broken", runs).findings}
    twin = report_on(name, "mended", runs_of_twin)
    assert ([finding.what for finding in twin.findings], twin.holds) == ([], True)


def test_a_defect_of_every_invariant_is_planted() -> None:
    assert len(ALL) == 14
    invariants = {"begins", "conversation", "resume", "effects", "checkpoint", "leftovers"}
    assert {each.invariant for each in ALL.values()} == invariants
