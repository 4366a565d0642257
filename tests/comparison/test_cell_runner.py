"""Cells of runs on the wall clock: each comes once, when its last run has ended, in whatever order runs end."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from docmind_lab.experiments.comparison import cell_runner
from docmind_lab.experiments.comparison.cell_runner import Bench, run_benches
from docmind_lab.tables.manifest import MachineUse


def with_run_id(run_id: str) -> Any:
    return SimpleNamespace(facts=SimpleNamespace(run_id=run_id), run=SimpleNamespace(run_id=run_id))


def test_a_cell_comes_once_with_all_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = tuple(SimpleNamespace(id=name, orders=[with_run_id(f"{name}{n}") for n in (0, 1)]) for name in "ab")

    def ends(*_: object, **__: object) -> Iterator[Any]:
        yield from map(with_run_id, ("a1", "b0", "b1", "a0"))

    monkeypatch.setattr(cell_runner, "runs_on_the_wall_clock", ends)
    bench = Bench(
        cast("Any", SimpleNamespace(clock="wall")), cast("Any", SimpleNamespace(settings=None)), cast("Any", cells)
    )
    results = [(each.cell_id, [one.run.run_id for one in each.measured]) for each in run_benches([bench], MachineUse())]
    assert results == [("b", ["b0", "b1"]), ("a", ["a1", "a0"])]
