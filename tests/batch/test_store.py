"""One file for each cell, there whole or not at all, and the tables that come back from them."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from often import often
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.errors import RecordError
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.records import TABLES, CallRecord, EventRecord


def call(run_id: str, **changes: Any) -> CallRecord:
    kinds = {"text": "x", "level": "x", "float": 0.25, "int": 1, "bool": False, "maybe_bool": True}
    values: dict[str, Any] = {column.name: kinds[column.kind] for column in TABLES["calls"][1]}
    levels = {"seen_from": "client", "kind": "llm", "outcome": "ok", "workload": "supervisor", "cut_by": "idle"}
    return CallRecord(**{**values, **levels, "run_id": run_id, **changes})


def measured(alternative: str, repeat: int) -> MeasuredRun:
    run = sample_run(alternative, repeat, coordination_overhead_s=math.nan)
    calls = (call(run.run_id, call_id="a"), call(run.run_id, call_id="b", ended_at_s=math.nan))
    events = (EventRecord("made-up", run.run_id, 0.1 + 0.2, "run_started", "", {"a": 1}),)
    return MeasuredRun(run, calls, events, Outcome("answered"))


def test_tables_come_back_as_the_records_make_them(tmp_path: Path) -> None:
    store = CellStore(tmp_path / "cells")
    runs = [measured("cooperative", 1), measured("hard_timeout", 2)]
    store.write("000", runs)
    tables = store.read()
    expected = {
        "runs": [item.run for item in runs],
        "calls": [row for item in runs for row in item.calls],
        "events": [row for item in runs for row in item.events],
    }
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(tables, name), to_frame(name, expected[name]), check_exact=True)


def test_cells_that_are_done_are_known_and_half_written_ones_are_not_among_them(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.write("000", [measured("cooperative", 1)])
    (tmp_path / ".001.parquet.abc").write_bytes(b"half")
    assert store.done() == {"000"}
    assert len(store.read().runs) == 1


def test_a_write_that_fails_leaves_the_cell_as_it_was_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CellStore(tmp_path)
    store.write("000", [measured("cooperative", 1)])
    before = (tmp_path / "000.parquet").read_bytes()

    def full(*arguments: object, **_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        store.write("000", [measured("cooperative", 2)])
    assert (tmp_path / "000.parquet").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["000.parquet"]


@pytest.mark.parametrize("count", often([30, 200], 30))
def test_a_flipped_bit_is_an_error_or_changes_no_value(count: int, tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    path = store.write("000", [measured("cooperative", number) for number in range(3)])
    before, content = store.read(), path.read_bytes()
    draw, refused = random.Random(7), 0
    for _ in range(count):
        place, bit = draw.randrange(len(content)), 1 << draw.randrange(8)
        path.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        try:
            after = store.read()
        except RecordError as error:
            refused += str(error).startswith(str(path))
            continue
        for name in ("runs", "calls", "events"):
            pd.testing.assert_frame_equal(getattr(after, name), getattr(before, name), check_exact=True)
    # The others are in statistics and padding, which no value comes from.
    assert refused > 0.4 * count


def test_a_cell_of_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CellStore(tmp_path)
    monkeypatch.setattr("docmind_lab.tables.cell_store.SCHEMA_VERSION", 99)
    store.write("000", [measured("cooperative", 1)])
    monkeypatch.undo()
    with pytest.raises(RecordError, match="schema version 99"):
        store.read()


def test_no_cells_are_empty_tables_with_their_dtypes(tmp_path: Path) -> None:
    tables = CellStore(tmp_path / "none").read()
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(tables, name), to_frame(name, []))


def test_removing_the_cells_leaves_what_is_not_theirs(tmp_path: Path) -> None:
    store = CellStore(tmp_path)
    store.write("000", [measured("cooperative", 1)])
    (tmp_path / "notes.txt").write_text("mine")
    store.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
