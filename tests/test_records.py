from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pandas as pd
import pytest

from docmind_lab.core.errors import RecordError
from docmind_lab.tables.frames import event_rows, positive_part, to_frame, with_dtypes
from docmind_lab.tables.records import TABLES, EventRecord
from docs.make_data_dictionary import whole_dictionary

EVENT = EventRecord("s", "r", 0.5, "returned", "", {})


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_documented_and_typed_with_and_without_rows(table: str) -> None:
    record_type, columns = TABLES[table]
    assert [column.name for column in columns] == [field.name for field in dataclasses.fields(record_type)]
    assert all(column.meaning.endswith(".") for column in columns)
    empty = to_frame(table, [])
    assert list(empty.columns) == [column.name for column in columns]
    assert {str(empty[c.name].dtype) for c in columns if c.kind == "level"} <= {"category"}


def test_the_detail_of_an_event_is_a_mapping_until_it_stands_in_a_table() -> None:
    detail = {"node": "ask", "begun_at_s": 0.25}
    table = to_frame("events", [EventRecord("s", "r", 0.5, "node_ended", "ask", detail)])
    assert table["detail"].tolist() == ['{"begun_at_s":0.25,"node":"ask"}']
    assert [row["detail"] for row in event_rows(table, "node_ended")] == [detail]


# A limit and what was spent of it, in the unit that the name begins with.
SPENDING = {
    *("token_budget", "call_budget", "cost_budget"),
    *(f"{unit}_{what}" for unit in ("tokens", "calls", "cost") for what in ("spent", "overspent")),
}


def test_a_number_carries_its_unit_in_its_name() -> None:
    for _, columns in TABLES.values():
        for column in columns:
            if column.kind == "float":
                units = (
                    "_s",
                    "_tokens",
                    "tokens_after_deadline",
                    "_recall",
                    "_score",
                    "_coverage",
                    "_deadline",
                    "_calls",
                    "adoption",  # a share, by the name of its factor
                )
                assert column.name.endswith((*units, "_calls")) or column.name in SPENDING, column.name


def test_a_table_of_an_earlier_release_has_its_columns_by_their_new_names() -> None:
    older = to_frame("runs", []).rename(columns={"node_mode": "node_colour"})
    assert list(with_dtypes("runs", older).columns) == list(to_frame("runs", []).columns)


def test_a_table_without_its_columns_is_refused_by_name() -> None:
    with pytest.raises(RecordError, match="no column detail"):
        with_dtypes("events", to_frame("events", [EVENT]).drop(columns="detail"))


def test_the_data_dictionary_in_docs_is_the_one_of_the_code() -> None:
    written = Path(__file__).parents[1] / "docs" / "data-dictionary.md"
    assert written.read_text(encoding="utf-8") == whole_dictionary(), "run `make docs`"


def test_the_positive_part_of_nan_is_nan() -> None:
    assert (positive_part(-1.0), positive_part(2.0)) == (0.0, 2.0)
    assert math.isnan(positive_part(math.nan))


def test_levels_are_categoricals_and_flags_are_booleans() -> None:
    frame = to_frame("events", [EVENT])
    assert isinstance(frame["event"].dtype, pd.CategoricalDtype)
    assert to_frame("runs", [])["work_censored"].dtype == bool
