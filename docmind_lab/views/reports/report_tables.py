"""The tables of a report: arms, differences, and the numbers behind a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.text import heading, level, number, one_line, p_text, percent, with_interval
from docmind_lab.findings.criteria import overran
from docmind_lab.findings.endings import ended_by_budget
from docmind_lab.statistics.differences import column_values
from docmind_lab.statistics.means import studentised_interval
from docmind_lab.statistics.restricted_means import restricted_means
from docmind_lab.statistics.sample_size import TooFewRuns, gated_quantile
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import by_condition, in_words, with_arms
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


_CONFIDENCE, _RESAMPLES, _SEED = 0.95, 4999, 0
_MEANS: Final = {
    "busy_after_deadline_s": ("late server seconds per run", 2),
    "tokens_after_deadline": ("late tokens per run", 0),
    "source_recall": ("source recall", 2),
}
"""Column of runs → its heading, and the digits of its mean."""

_OVERRUN_P90, _BY_BUDGET = "caller overrun p90 (s)", "ended by a budget"
_UNITS: Final = {
    "answered_in_time": ("answered in time (% of runs)", 100.0, 0),
    "time_to_answer_s": ("time to an answer, up to the deadline (s)", 1.0, 2),
    "caller_overrun_s": ("caller overrun (s)", 1.0, 3),
    "busy_after_deadline_s": ("late server seconds per run", 1.0, 2),
    "source_recall": ("source recall", 1.0, 2),
}


def arms_tables(runs: pd.DataFrame, apart: Sequence[str], most: int) -> list[Table]:
    """Return the measures of each arm: a table for each condition, or one for all if there are more than `most`."""
    groups = list(by_condition(runs))
    if len(groups) > most:
        rows = [row for condition, group in groups for row in _arms_of(group, condition, apart)]
        return [_arms_table("Every arm in every condition", rows)]
    tables = []
    for condition, group in groups:
        words = in_words(condition, apart)
        tables.append(_arms_table(f"Every arm{words and f', {words}'}", _arms_of(group, condition, ())))
    return tables


def _arms_table(caption: str, rows: list[dict[str, str]]) -> Table:
    """Return the table of arms, without the columns that say nothing of any of them."""
    shown = pd.DataFrame(rows)
    empty = {_OVERRUN_P90: "–", _BY_BUDGET: "0"}
    return Table(
        caption, shown.drop(columns=[name for name in empty if (shown[name] == empty[name]).all()]), is_main=True
    )


def _arms_of(runs: pd.DataFrame, condition: Mapping[str, Any], apart: Sequence[str]) -> list[dict[str, str]]:
    """Return a row for each arm; bounds are of 95 % intervals. apart: columns of the condition that are shown."""
    named = with_arms(runs)
    until = {str(row["arm"]): row for row in restricted_means(named).to_dict("records")}
    shown = {heading(name): _level(condition[name]) for name in apart}
    return [
        {"arm": one_line(str(arm)), **shown, **_measures(group, until[str(arm)])}
        for arm, group in named.groupby("arm", observed=True, sort=True)
    ]


def _measures(runs: pd.DataFrame, until: Mapping[Any, Any]) -> dict[str, str]:
    """Return what the runs of one arm did, by heading. until: their time until an answer."""
    answered = int(runs["answered_in_time"].sum())
    share = share_interval(answered, len(runs), _CONFIDENCE)
    overrun_s = column_values(runs, "caller_overrun_s")
    high = gated_quantile(overrun_s, 0.9)
    return {
        "runs": str(len(runs)),
        "answered in time": f"{answered} · {percent(share.estimate)} [{percent(share.low)}, {percent(share.high)}]",
        "time to an answer (s)": with_interval(until["mean_s"], until["low_s"], until["high_s"], 2),
        "overran (median, worst s)": _overran(runs, overrun_s),
        _OVERRUN_P90: number(math.nan if isinstance(high, TooFewRuns) else high.estimate, 3),
        **{name: _mean(runs[column].to_numpy(dtype=np.float64), digits) for column, (name, digits) in _MEANS.items()},
        _BY_BUDGET: str(ended_by_budget(runs).sum()),
    }


def _overran(runs: pd.DataFrame, overrun_s: np.ndarray[Any, Any]) -> str:
    """Return how many callers were late and by how much; "≥" before what is a lower bound, as runs never ended."""
    late = overran(runs).to_numpy()
    if not late.any():
        return "0"
    unfinished = (runs["outcome"].astype("str") == "unfinished").sum()
    worst = f"{'≥ ' if unfinished else ''}{number(float(overrun_s.max()), 2)}"
    median = f"{'≥ ' if 2 * unfinished >= late.sum() else ''}{number(float(np.median(overrun_s[late])), 2)}"
    return f"{late.sum()} ({median}, {worst})"


def _mean(values: np.ndarray[Any, Any], digits: int) -> str:
    """Return a mean with its interval; equal bounds mean that all runs are alike."""
    if np.isnan(values).any():
        return with_interval(math.nan, math.nan, math.nan, digits)
    if len(values) < 2:
        return with_interval(float(values[0]), math.nan, math.nan, digits)
    result = studentised_interval((values,), _CONFIDENCE, _SEED, _RESAMPLES)
    # What is never negative has no mean below 0, whatever a studentised bound of few runs says.
    low = max(0.0, result.low) if (values >= 0).all() else result.low
    if low == result.high:
        return f"{number(result.estimate, digits)} (all alike)"
    return with_interval(result.estimate, low, result.high, digits)


def contrasts_table(frame: pd.DataFrame, apart: Sequence[str]) -> Table:
    """Return the table of `findings.contrasts`, in the order of the frame."""
    shown: dict[str, list[str]] = {"arm": [one_line(arm) for arm in frame["arm"]]}
    shown |= {heading(name): [_level(value) for value in frame[name]] for name in apart}
    rows = frame.to_dict("records")
    shown["measure"] = [_UNITS[row["measure"]][0] for row in rows]
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
    _, scale, digits = _UNITS[row["measure"]]
    if row["low"] == row["high"] == 0:
        return "0 (all alike)"
    values = (row["difference"], row["low"], row["high"])
    return "{} [{}, {}]".format(*(signed(scale * value, digits) for value in values))


def signed(value: float, digits: int) -> str:
    """Format a number with its sign; 0 without one."""
    text = f"{value:+.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def _level(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return level(value)
