"""A sweep computes each cell once, tells how far it is, and says what it could not compute."""

from __future__ import annotations

import errno
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_studies import CELLS, DESIGN, RUNS, Scripted, assert_same_tables, computed_by, made_up_cell, small_cells

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.experiments.batch import Cell, CellResult
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.findings.study import Study
from docmind_lab.tables.cell_store import CellStore


def interrupted_after(cells: int, out: Path, executor: Scripted) -> None:
    """A sweep that is interrupted when so many of its cells are done, and returns them."""

    def interrupt(done: int, total: int) -> None:
        if done >= cells * RUNS // CELLS:
            raise KeyboardInterrupt

    part = swept(executor, out, progress=interrupt)
    assert_same_tables(part, Study.load(out))
    assert part.interrupted == f"{len(part.runs)} of {RUNS} runs"


def swept(executor: Scripted, out: Path | None = None, **options: Any) -> Study:
    with small_cells(), computed_by(executor):
        return sweep(DESIGN, out=out, **options)


def test_every_cell_is_computed_once_and_every_run_is_in_the_tables_with_and_without_a_folder(tmp_path: Path) -> None:
    executor = Scripted()
    study = swept(executor, tmp_path)
    assert len(set(executor.asked)) == len(executor.asked) == CELLS
    assert len(study.runs) == RUNS == study.runs["run_id"].nunique()
    assert study.manifest["complete"]
    assert study.manifest["failed_cells"] == []
    assert study.manifest["schema_version"] == SCHEMA_VERSION
    assert_same_tables(study, swept(Scripted()))


def test_the_manifest_says_what_cpu_time_the_runs_of_this_attempt_took() -> None:
    use = swept(Scripted()).manifest["machine_use"]
    assert use["cpu_s_per_run"] > 0
    assert swept(Scripted(lambda cell: replace(made_up_cell(cell), cpu_s=0.5))).manifest["machine_use"][
        "cpu_s_per_run"
    ] == pytest.approx(0.5 * CELLS / RUNS)


def test_cells_of_several_systems_are_handed_out_in_one_stream_without_waiting_for_each_other() -> None:
    class FourWorkers(Scripted):
        _max_workers = 4

    executor, asked_by_then = FourWorkers(), []
    factors = {**DESIGN["factors"], "fault": ["none", "hang:planner"]}
    with small_cells(1), computed_by(executor):
        sweep(
            {**DESIGN, "repeats": 1, "factors": factors},
            progress=lambda done, _: asked_by_then.append(len(executor.asked) if done == 1 else 0),
        )
    assert {name.split("-")[0] for name in executor.asked} == {"00", "01"}
    assert max(asked_by_then) == len(executor.asked) == 8, "all were under way when the first came back"


# ---- progress


def test_progress_counts_runs_never_goes_back_and_ends_at_all(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    swept(Scripted(), tmp_path, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, RUNS)
    assert seen[-1] == (RUNS, RUNS)
    assert seen == sorted(seen)
    assert {done for done, _ in seen} == {0, 2, 4, 6, 8}


def test_progress_of_a_study_that_goes_on_starts_from_what_is_there(tmp_path: Path) -> None:
    interrupted_after(1, tmp_path, Scripted())
    there = len(Study.load(tmp_path).runs)
    seen: list[int] = []
    executor = Scripted()
    swept(executor, tmp_path, progress=lambda done, total: seen.append(done))
    assert 0 < seen[0] == there < RUNS
    assert (seen[-1], 2 * len(executor.asked)) == (RUNS, RUNS - there)


# ---- full disk


@pytest.mark.parametrize("file", ["00-002.parquet", "calls.parquet", "manifest.json", "design.json"])
def test_a_full_disk_is_said_in_one_line_and_costs_only_what_was_being_written(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).name == file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(
            RecordError, match=r"cannot be written \(No space left on device\).* make room, then run"
        ) as e:
            swept(Scripted(), out)
    assert len(str(e.value).splitlines()) == 1
    there = CellStore(out / "cells").done()
    assert list(out.rglob(".*.parquet.*")) == [], "no half of a file is left"
    executor = Scripted()
    assert_same_tables(swept(executor, out), swept(Scripted()))
    assert len(executor.asked) == CELLS - len(there)


# ---- what is lost


def test_a_cell_that_is_lost_is_named_and_the_same_call_tries_it_again(tmp_path: Path) -> None:
    tries: Counter[str] = Counter()

    def act(cell: Cell) -> CellResult:
        tries[cell.id] += 1
        if cell.id == "00-001":
            raise ZeroDivisionError("a defect")
        return made_up_cell(cell)

    part = swept(Scripted(act), tmp_path)
    assert not part.manifest["complete"]
    assert part.manifest["failed_cells"] == [{"cell": "00-001", "reason": "ZeroDivisionError: a defect"}]
    assert (tries["00-001"], sum(tries.values())) == (2, CELLS + 1)
    assert len(part.runs) == RUNS - 2
    assert Study.load(tmp_path).manifest["failed_cells"] == part.manifest["failed_cells"]
    assert "1 cell of runs failed twice and is left out (00-001: ZeroDivisionError: a defect)" in str(part.report())
    again = Scripted()
    assert_same_tables(swept(again, tmp_path), swept(Scripted()))
    assert again.asked == ["00-001"]
    assert Study.load(tmp_path).manifest["failed_cells"] == []
