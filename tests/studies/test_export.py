"""Tables for other tools come back as they were."""

from __future__ import annotations

import builtins
import json
import os
from pathlib import Path

import pandas as pd
import pytest
from sample_runs import MANIFEST, sample_run, study_of

from docmind_lab.analysis.export import export_csv, export_duckdb, flatten
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.frames import to_frame, with_dtypes
from docmind_lab.analysis.tables.records import TABLES, CallRecord, EventRecord
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN

# What a careless reader would change: text that looks like a number or like nothing, commas, quotes, umlauts, digits.
CALL = CallRecord(
    "made-up", "cooperative-0", "007", "", 1, "server", "supervisor", "cooperative", "planner", "0.10", "llm",
    0.1 + 0.2, NAN, NAN, NAN, 1e-17, NAN, -0.0, NAN, "abandoned", True, True, NAN, 12.0, "NA",
)  # fmt: skip
EVENT = EventRecord("made-up", "cooperative-0", 1 / 3, "retrieved", "", '{"ids": ["a,b", "\\"c\\""], "strategy": "né"}')


# As a column of each kind is to be read from CSV.
READ_AS = {"text": "str", "level": "str", "float": "float64", "int": "int64", "bool": "bool", "maybe_bool": "boolean"}


def read_csv(folder: Path, table: str) -> pd.DataFrame:
    _, columns = TABLES[table]
    missing = {column.name: ["NaN"] for column in columns if column.kind in ("float", "maybe_bool")}
    dtypes = {column.name: READ_AS[column.kind] for column in columns}
    path = folder / f"{table}.csv"
    return with_dtypes(table, pd.read_csv(path, dtype=dtypes, keep_default_na=False, na_values=missing))


def read_duckdb(path: Path, table: str) -> pd.DataFrame:
    import duckdb

    with duckdb.connect(str(path), read_only=True) as connection:
        return with_dtypes(table, connection.execute(f'SELECT * FROM "{table}"').df())


def study() -> Study:
    runs = [
        sample_run("cooperative", 0, question_id="NaN", alternative_options='{"cap": "per_read"}'),
        sample_run("hard_timeout", 1, source_recall=1 / 3, caller_overrun_s=NAN, returned_at_s=NAN, question_id="1"),
    ]
    tables = study_of(runs)
    return Study(tables.runs, to_frame("calls", [CALL]), to_frame("events", [EVENT]), MANIFEST | {"machine": {}})


@pytest.mark.parametrize("table", TABLES)
def test_a_table_comes_back_from_csv_as_it_was(tmp_path: Path, table: str) -> None:
    export_csv(study(), tmp_path)
    pd.testing.assert_frame_equal(read_csv(tmp_path, table), getattr(study(), table), check_exact=True)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_comes_back_from_duckdb_as_it_was(tmp_path: Path, table: str) -> None:
    pytest.importorskip("duckdb")
    path = export_duckdb(study(), tmp_path / "study.duckdb")
    pd.testing.assert_frame_equal(read_duckdb(path, table), getattr(study(), table), check_exact=True)


def test_empty_tables_come_back_too(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    nothing = Study(*(to_frame(name, []) for name in ("runs", "calls", "events")), MANIFEST)
    export_csv(nothing, tmp_path / "csv")
    path = export_duckdb(nothing, tmp_path / "none.duckdb")
    for table in TABLES:
        pd.testing.assert_frame_equal(read_csv(tmp_path / "csv", table), getattr(nothing, table))
        pd.testing.assert_frame_equal(read_duckdb(path, table), getattr(nothing, table))


def test_csv_is_utf_8_with_one_line_of_headings_and_a_named_missing_value(tmp_path: Path) -> None:
    written = export_csv(study(), tmp_path)
    assert [path.name for path in written] == sorted(os.listdir(tmp_path), key=[p.name for p in written].index)
    lines = (tmp_path / "runs.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split(",")[:3] == ["study_id", "run_id", "workload"]
    assert len(lines) == 3
    assert ",NaN," in lines[2]
    assert "né" in (tmp_path / "events.csv").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "manifest.json").read_text()) == study().manifest
    assert "`NaN` is a number that is not known" in (tmp_path / "data-dictionary.md").read_text(encoding="utf-8")


def test_duckdb_knows_what_its_columns_mean_and_how_the_study_was_made(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = export_duckdb(study(), tmp_path / "study.duckdb")
    with duckdb.connect(str(path), read_only=True) as connection:
        asked = "SELECT comment FROM duckdb_columns() WHERE table_name = 'runs' AND column_name = 'horizon_s'"
        assert connection.execute(asked).fetchone() == ("How long the run was observed at most.",)
        assert connection.execute("SELECT value FROM manifest WHERE field = 'design.seed'").fetchone() == ("7",)
        # NULL, so that a mean is of what is known.
        assert connection.execute("SELECT avg(caller_overrun_s), count(*) FROM runs").fetchone() == (0.0, 2)


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    export_csv(study(), tmp_path)
    with pytest.raises(ConfigurationError, match=r"holds calls\.csv already; choose another"):
        export_csv(study(), tmp_path)
    mine = tmp_path / "mine.duckdb"
    mine.write_text("mine")
    with pytest.raises(ConfigurationError, match="is there already; choose another"):
        export_duckdb(study(), mine)
    assert mine.read_text() == "mine"


def test_a_failed_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.setattr("docmind_lab.analysis.export._create_manifest", _fail)
    with pytest.raises(RuntimeError):
        export_duckdb(study(), tmp_path / "study.duckdb")
    assert os.listdir(tmp_path) == []


def _fail(*args: object, **options: object) -> str:
    raise RuntimeError("full")


def test_without_duckdb_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object, **options: object) -> object:
        if name == "duckdb":
            raise ImportError(name)
        return real(name, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigurationError, match=r"docmind_lab\[duckdb\]"):
        export_duckdb(study(), tmp_path / "study.duckdb")


def test_a_place_that_cannot_be_written_is_refused_by_the_option_that_named_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for export, target in ((export_csv, tmp_path / "file" / "out"), (export_duckdb, tmp_path / "file" / "a.duckdb")):
        with pytest.raises(ConfigurationError, match=r"^--to .*file.* cannot be written"):
            export(study_of([]), target)


def test_a_manifest_is_flat_with_a_path_for_each_leaf() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": [1, 2]}, "e": {}}) == {"a.b.c": 1, "a.d": [1, 2], "e": {}}
