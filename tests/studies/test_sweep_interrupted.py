"""However a sweep ends, the same call goes on from there, and the tables are those of a sweep that was left alone."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from held_graphs import wait_until
from job_program import INTERRUPTED, PATIENCE_S, JobProgram, job_program
from small_studies import CELLS, DESIGN, RUNS, assert_same_tables, small_cells

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.findings.study import Study
from docmind_lab.tables.records import TABLES


@pytest.fixture(scope="module")
def sweeps() -> Iterator[JobProgram]:
    with job_program("study_program.py") as program:
        yield program


@pytest.fixture(scope="module")
def alone() -> Study:
    """The study, computed at one go, in cells of another size and without a folder."""
    return sweep(DESIGN, workers=1)


def resumed(out: Path) -> Study:
    with small_cells():
        return sweep(DESIGN, out=out, workers=1)


def cells_in(out: Path) -> int:
    return len(list((out / "cells").glob("[!.]*.parquet")))


def kept(out: Path) -> list[str]:
    """Each cell that was written."""
    return Path(f"{out}.log").read_text(encoding="utf-8").splitlines()


def errors(out: Path) -> str:
    return Path(f"{out}.said").read_text(encoding="utf-8")


def require_whole_and_tidy(out: Path, study: Study, alone: Study) -> None:
    assert study.manifest["complete"]
    assert_same_tables(study, alone)
    assert_same_tables(Study.load(out), alone)
    assert_same_tables(Study.load(out), alone)
    names = {f"{name}.parquet" for name in TABLES} | {"manifest.json", "design.json", ".study.lock"}
    assert {path.name for path in out.iterdir()} == names


# Of some thirty changes of its files, this is one of a cell's.
IN_THE_MIDDLE = 14


def test_killed_before_a_step_of_its_files_it_goes_on_to_the_same_tables(
    sweeps: JobProgram, alone: Study, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert sweeps.ended(sweeps.start(command="study", out=str(out), kill_at_step=IN_THE_MIDDLE)) == -signal.SIGKILL
    assert 0 < cells_in(out) < CELLS
    study = resumed(out)
    require_whole_and_tidy(out, study, alone)
    assert len(study.runs) == RUNS


@pytest.mark.full
def test_killed_again_and_again_at_each_next_step_it_comes_to_the_same_tables(
    sweeps: JobProgram, alone: Study, tmp_path: Path
) -> None:
    """Two attempts die at each step, a little later than those before; none starts from nothing."""
    out = tmp_path / "out"
    attempts = 0
    for step in (step for step in itertools.count(1) for _ in range(2)):
        code = sweeps.ended(sweeps.start(command="study", out=str(out), kill_at_step=step))
        if code == 0:
            break
        assert code == -signal.SIGKILL, errors(out)
        attempts += 1
    assert attempts >= 20
    assert len(kept(out)) == CELLS, "no cell was computed twice"
    require_whole_and_tidy(out, resumed(out), alone)


def test_a_second_process_is_refused_until_the_first_has_ended_however_it_ends(
    sweeps: JobProgram, alone: Study, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pid = sweeps.start(command="study", out=str(out))
    wait_until(lambda: cells_in(out) >= 1, PATIENCE_S)
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ConfigurationError, match="another process works on this study"):
        resumed(out)
    os.killpg(pid, signal.SIGKILL)
    assert sweeps.ended(pid) == -signal.SIGKILL
    require_whole_and_tidy(out, resumed(out), alone)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_ctrl_c_ends_it_at_once_with_every_finished_cell_on_disk(
    workers: int, sweeps: JobProgram, alone: Study, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pid = sweeps.start(command="study", out=str(out), workers=workers)
    wait_until(lambda: cells_in(out) >= 1, PATIENCE_S)
    # As a terminal does: the workers hear it too.
    os.killpg(pid, signal.SIGINT)
    assert sweeps.ended(pid) == INTERRUPTED, errors(out)
    part = Study.load(out)
    assert not part.manifest["complete"]
    assert 0 < len(part.runs) < RUNS, "it did not wait for the rest"
    assert len(part.runs) == 2 * cells_in(out)
    whole = alone.runs[alone.runs["run_id"].isin(part.runs["run_id"])].reset_index(drop=True)
    assert part.runs["returned_at_s"].tolist() == whole["returned_at_s"].tolist()
    require_whole_and_tidy(out, resumed(out), alone)
