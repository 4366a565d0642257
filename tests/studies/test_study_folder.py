"""A folder belongs to one study: one file for each finished cell, one process at a time, and then the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_studies import DESIGN, RUNS, Scripted, assert_same_tables, computed_by, made_up_cell, small_cells

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.settings import Settings
from docmind_lab.core.whole_files import write_whole
from docmind_lab.experiments.batch import Cell, CellResult
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep
from docmind_lab.findings.study import Study, prepare_folder
from docmind_lab.findings.study_folder import StudyFolder
from docmind_lab.tables.cell_store import CellStore

STUDY = StudyDesign.of(DESIGN)


def cells() -> tuple[Cell, ...]:
    with small_cells():
        (bench,) = benches_of(STUDY, Settings())
    return bench.cells


def opened(path: Path, **changes: Any) -> StudyFolder:
    facts: dict[str, Any] = {"study_id": STUDY.study_id, "design": STUDY.to_dict(), "settings": Settings()}
    return StudyFolder(path, **{**facts, **changes})


def with_cells(path: Path, *chosen: Cell) -> StudyFolder:
    """The folder of a study that was stopped when these cells were done."""
    with opened(path) as folder:
        for cell in chosen:
            folder.keep(cell.id, made_up_cell(cell).measured)
    return folder


def finished(path: Path, executor: Scripted | None = None) -> Study:
    with small_cells(), computed_by(executor or Scripted()):
        return sweep(DESIGN, out=path)


def test_a_sweep_that_is_interrupted_before_its_first_cell_leaves_no_folder(tmp_path: Path) -> None:
    def interrupt(cell: Cell) -> CellResult:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finished(tmp_path / "out", Scripted(interrupt))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", [{"seed": 8}, {"repeats": 3}, {"factors": {"alternative": "A"}}])
def test_the_folder_of_another_study_is_refused_by_name_and_left_alone(change: dict[str, Any], tmp_path: Path) -> None:
    finished(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = StudyDesign.of({**DESIGN, **change})
    with pytest.raises(ConfigurationError) as raised:
        sweep(other, out=tmp_path)
    for part in (str(tmp_path), STUDY.study_id, other.study_id, "choose another folder"):
        assert part in str(raised.value)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "design.json").unlink()
    with pytest.raises(ConfigurationError, match="holds another study"):
        finished(tmp_path)


def test_a_study_is_not_gone_on_with_under_other_settings(tmp_path: Path) -> None:
    with_cells(tmp_path, cells()[0])
    other = Settings(agents={"max_retries": 3})
    with pytest.raises(ConfigurationError, match=r"other settings \(agents\.max_retries\)"):
        sweep(DESIGN, out=tmp_path, settings=other)


def test_settings_without_a_part_in_a_run_may_change(tmp_path: Path) -> None:
    with_cells(tmp_path, cells()[0])
    # The budget is a factor; the key is a secret, and is not written down.
    settings = Settings(log_level="ERROR", agents={"decision_timeout": 3}, llm={"api_key": "hidden"})
    with opened(tmp_path, settings=settings):
        pass
    assert "hidden" not in (tmp_path / "design.json").read_text()


def test_a_finished_study_is_returned_without_computing(tmp_path: Path) -> None:
    first, idle = finished(tmp_path), Scripted()
    assert_same_tables(finished(tmp_path, idle), first)
    assert idle.asked == []


def test_a_finished_study_is_whole_although_its_cells_were_not_all_removed(tmp_path: Path) -> None:
    study = finished(tmp_path)
    leftover = cells()[1]
    (tmp_path / "cells").mkdir()
    opened(tmp_path / "elsewhere").store.write(leftover.id, made_up_cell(leftover).measured)
    (tmp_path / "elsewhere" / "cells" / f"{leftover.id}.parquet").rename(tmp_path / "cells" / f"{leftover.id}.parquet")
    assert len(Study.load(tmp_path).runs) == RUNS
    assert_same_tables(Study.load(tmp_path), study)
    finished(tmp_path)
    assert not (tmp_path / "cells").exists()


def test_what_killed_writers_left_is_removed_at_the_end(tmp_path: Path) -> None:
    folder = with_cells(tmp_path)
    left = [tmp_path / ".runs.parquet.x1", tmp_path / ".manifest.json.x2", folder.store.folder / ".00-000.parquet.x3"]
    for path in left:
        path.write_text("half a file")
    mine = tmp_path / "notes.txt"
    mine.write_text("not the study's")
    finished(tmp_path)
    assert [path for path in left if path.exists()] == []
    assert mine.exists()


def test_an_unfinished_study_is_read_as_far_as_it_is_done(tmp_path: Path) -> None:
    with_cells(tmp_path, *cells()[:2])
    part = Study.load(tmp_path)
    assert sorted(part.runs["run_id"]) == sorted(o.facts.run_id for cell in cells()[:2] for o in cell.orders)
    assert not part.manifest["complete"]
    assert (part.manifest["study_id"], part.manifest["design"]) == (STUDY.study_id, STUDY.to_dict())
    again = Study.load(part.save(tmp_path / "copy"))
    assert_same_tables(again, part)


def test_a_cell_of_another_study_is_refused_and_goes_on_once_it_is_removed(tmp_path: Path) -> None:
    with small_cells():
        (bench,) = benches_of(StudyDesign.of({**DESIGN, "seed": 99}), Settings())
    stranger = CellStore(with_cells(tmp_path).store.folder).write(cells()[0].id, made_up_cell(bench.cells[0]).measured)
    refusal = rf"{stranger.name} is a cell of study .*, not of {STUDY.study_id}; remove that file and run"
    with pytest.raises(RecordError, match=refusal):
        finished(tmp_path)
    with pytest.raises(RecordError, match=refusal):
        Study.load(tmp_path)
    stranger.unlink()
    assert set(finished(tmp_path).runs["study_id"]) == {STUDY.study_id}


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ConfigurationError, match=r"--out .*out cannot be written"):
        opened(tmp_path / "out")


def test_the_manifest_is_the_last_to_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def noted(path: Path, write: Any) -> Path:
        written.append(path.name)
        return write_whole(path, write)

    monkeypatch.setattr("docmind_lab.findings.study_folder.write_whole", noted)
    finished(tmp_path)
    assert (written[0], written[-1]) == ("design.json", "manifest.json")
    assert set(written[1:-1]) == {"runs.parquet", "calls.parquet", "events.parquet"}


def test_a_comparison_is_kept_out_of_a_folder_with_an_unfinished_study(tmp_path: Path) -> None:
    (tmp_path / "design.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="holds a study already"):
        prepare_folder(tmp_path)
