"""The frame behind a figure as a table: every number that was drawn, in the figure's order."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.text import one_line
from docmind_lab.interfaces.reports.model import Table

MOST_ROWS: Final = 400
"""Longer tables are not on the page: they are in the tables of the study, and `docmind-lab export` writes those."""

# Of use to whoever draws only: the number of an arm, its level beside its label, places within a lane.
_NOT_SHOWN: Final = frozenset({"group", "alternative", "sublane", "sublanes", "call_id", "run_id", "lane"})
_NAMES: Final = ("label", "arm", "option", "perf", "role")
_UNITS: Final = {"_at_s": " at (s)", "_s": " (s)", "_per_s": " (1/s)", "_percent": " (%)"}


def table_of(caption: str, frame: pd.DataFrame) -> Table:
    """The frame as a table, arms first, headings in words with their units.

    One with more than MOST_ROWS rows says so in its caption, and has none.
    """
    plain = frame.astype({name: "str" for name in frame.columns if isinstance(frame[name].dtype, pd.CategoricalDtype)})
    plain = plain.reset_index(drop=True)
    columns = [name for name in plain.columns if name not in _NOT_SHOWN or (name == "run_id" and "seed" not in plain)]
    columns.sort(key=lambda name: _NAMES.index(name) if name in _NAMES else len(_NAMES))
    if len(plain) > MOST_ROWS:
        caption = (
            f"{caption}: {len(plain):,} rows, too many for a page; docmind-lab export writes all that was measured"
        )
        plain = plain.iloc[:0]
    shown = pd.DataFrame({heading(name): [_cell(value) for value in plain[name]] for name in columns}, dtype="str")
    words = {name for name in columns[1:] if not pd.api.types.is_numeric_dtype(plain[name])}
    return Table(caption, shown, plain, left=frozenset(heading(name) for name in words))


def heading(name: str) -> str:
    """The name of a column in words, its unit in brackets."""
    for ending, unit in _UNITS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')}{unit}"
    return "arm" if name == "label" else name.replace("_", " ")


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _number(value)
    return one_line(str(value))


def _number(value: float) -> str:
    """Four digits, which no sample of some hundred runs reaches the end of."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
