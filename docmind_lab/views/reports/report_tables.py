"""The tables of a report: arms, differences, and the numbers behind a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.text import heading, one_line, p_text
from docmind_lab.findings.criteria import MEASURES
from docmind_lab.findings.summary import summarise
from docmind_lab.tables.conditions import by_condition, condition_columns, in_words
from docmind_lab.views.reports.report_page import Table

MOST_ROWS: Final = 400
"""Longer tables are not on the page: they are in the Parquet files of the study."""

# Of use to whoever draws only: the number of an arm, its level beside its label, places within a lane.
_NOT_SHOWN: Final = frozenset({"group", "alternative", "sublane", "sublanes", "call_id", "run_id", "lane"})
_NAMES: Final = ("label", "arm", "option", "perf", "role")


def table_of(caption: str, frame: pd.DataFrame) -> Table:
    """Return the frame as a table, arms first, with units in the headings.

    One with more than MOST_ROWS rows says so in its caption, and has none.
    """
    plain = frame.astype({name: "str" for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)})
    plain = plain.reset_index(drop=True)
    columns = [name for name in plain.columns if name not in _NOT_SHOWN or (name == "run_id" and "seed" not in plain)]
    columns.sort(key=lambda name: _NAMES.index(name) if name in _NAMES else len(_NAMES))
    if len(plain) > MOST_ROWS:
        caption = (
            f"{caption}: {len(plain):,} rows, too many for a page; the study's Parquet files have all that was measured"
        )
        plain = plain.iloc[:0]
    shown = pd.DataFrame({heading(name): [_cell(value) for value in plain[name]] for name in columns}, dtype="str")
    words = {name for name in columns[1:] if not pd.api.types.is_numeric_dtype(plain[name])}
    return Table(caption, shown, left=frozenset(heading(name) for name in words))


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _four_digits(value)
    return one_line(str(value))


def _four_digits(value: float) -> str:
    """Format a number with four digits, more than a sample of some hundred runs can tell."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def arms_blocks(runs: pd.DataFrame, most: int) -> Iterator[str | Table]:
    """Yield the table of the summary and what its headings mean: a table for each condition, of up to `most`."""
    apart, groups = condition_columns(runs), list(by_condition(runs))
    yield summarise(runs, {}).note
    if len(groups) > most:
        yield _arms_table("Every arm in every condition", runs)
        return
    for condition, group in groups:
        words = in_words(condition, apart)
        yield _arms_table(f"Every arm{words and f', {words}'}", group)


def _arms_table(caption: str, runs: pd.DataFrame) -> Table:
    summary = summarise(runs, {})
    shown = summary.display_table().rename_axis("arm").reset_index()
    shown.insert(1, "runs", summary.table["runs"].to_numpy())
    return Table(caption, shown.assign(arm=shown["arm"].map(one_line)), is_main=True)


def contrasts_table(frame: pd.DataFrame, apart: Sequence[str]) -> Table:
    """Return the table of `findings.contrasts`, in the order of the frame."""
    shown: dict[str, list[str]] = {"arm": [one_line(arm) for arm in frame["arm"]]}
    shown |= {heading(name): [_cell(value) for value in frame[name]] for name in apart}
    rows = frame.to_dict("records")
    shown["measure"] = [MEASURES[row["measure"]].words for row in rows]
    shown["difference"] = [_difference(row) for row in rows]
    shown["pairs"] = [str(row["pairs"]) for row in rows]
    shown["p, corrected"] = [p_text(row["p_corrected"]) for row in rows]
    shown["differs"] = ["yes" if row["differs"] else "not shown" for row in rows]
    reference = one_line(str(frame["reference"].iloc[0]))
    return Table(
        f"Every arm minus {reference}, seed by seed",
        pd.DataFrame(shown),
        left=frozenset({"measure", "differs", *(heading(name) for name in apart)}),
    )


def _difference(row: Mapping[Any, Any]) -> str:
    if row["low"] == row["high"] == 0:
        return "0 (all alike)"
    measure = MEASURES[row["measure"]]
    return f"{measure.change(row['difference'], row['low'], row['high'])}{measure.unit}"
