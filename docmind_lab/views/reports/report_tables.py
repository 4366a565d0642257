"""The tables of a report: arms, differences, and the numbers behind a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.text import level, number, one_line, p_text, percent, with_interval
from docmind_lab.findings.criteria import overran
from docmind_lab.findings.endings import ended_by_budget
from docmind_lab.statistics.differences import column_values
from docmind_lab.statistics.means import studentised_interval
from docmind_lab.statistics.restricted_means import restricted_means
from docmind_lab.statistics.sample_size import TooFewRuns, gated_quantile
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import by_condition, in_words, with_arms
from docmind_lab.views.reports.report_model import Table

MOST_ROWS: Final = 400
"""Longer tables are not on the page: they are in the Parquet files of the study."""

# Of use to whoever draws only: the number of an arm, its level beside its label, places within a lane.
_NOT_SHOWN: Final = frozenset({"group", "alternative", "sublane", "sublanes", "call_id", "run_id", "lane"})
_NAMES: Final = ("label", "arm", "option", "perf", "role")
_ENDINGS: Final = {"_at_s": " at (s)", "_s": " (s)", "_per_s": " (1/s)", "_percent": " (%)"}


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


def heading(name: str) -> str:
    """Return the name of a column in words, its unit in brackets."""
    for ending, unit in _ENDINGS.items():
        if name.endswith(ending):
            return f"{name.removesuffix(ending).replace('_', ' ')}{unit}"
    return "arm" if name == "label" else name.replace("_", " ")


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
_MEANS: Final = ("busy_after_deadline_s", "tokens_after_deadline", "source_recall")
_DIGITS: Final = {"busy_after_deadline_s": 2, "tokens_after_deadline": 0, "source_recall": 2}
_HEADINGS: Final = {
    "busy_after_deadline_s": "late server seconds per run",
    "tokens_after_deadline": "late tokens per run",
    "source_recall": "source recall",
}
_UNITS: Final = {
    "answered_in_time": ("answered in time (% of runs)", 100.0, 0),
    "time_to_answer_s": ("time to an answer, up to the deadline (s)", 1.0, 2),
    "caller_overrun_s": ("caller overrun (s)", 1.0, 3),
    "busy_after_deadline_s": ("late server seconds per run", 1.0, 2),
    "source_recall": ("source recall", 1.0, 2),
}


def arms_tables(runs: pd.DataFrame, apart: Sequence[str], most: int) -> list[Table]:
    """Return the measures of each arm: a table for each condition, or one for all if there are more than `most`."""
    frames = [_arms_of(group, {name: condition[name] for name in apart}) for condition, group in by_condition(runs)]
    if len(frames) > most:
        together = pd.concat(frames, ignore_index=True)
        return [Table("Every arm in every condition", _arms_shown(together, apart), is_main=True)]
    tables = []
    for frame in frames:
        where = in_words(frame.iloc[0], apart)
        tables.append(Table(f"Every arm{where and f', {where}'}", _arms_shown(frame, ()), is_main=True))
    return tables


def _arms_of(runs: pd.DataFrame, condition: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per arm; bounds are of 95 % intervals."""
    named = with_arms(runs)
    means = restricted_means(named)
    until = {str(row["arm"]): row for row in means.to_dict("records")}
    rows = []
    for arm, group in named.groupby("arm", observed=True, sort=True):
        share = share_interval(int(group["answered_in_time"].sum()), len(group), _CONFIDENCE)
        overrun_s = column_values(group, "caller_overrun_s")
        high = gated_quantile(overrun_s, 0.9)
        late = overran(group).to_numpy()
        row: dict[str, Any] = {
            **condition,
            "arm": str(arm),
            "runs": len(group),
            "answered_in_time": int(group["answered_in_time"].sum()),
            "share": share.estimate,
            "share_low": share.low,
            "share_high": share.high,
            "unfinished": int((group["outcome"].astype("str") == "unfinished").sum()),
            "ended_by_budget": int(ended_by_budget(group).sum()),
        }
        row |= {f"time_to_answer_{name}": until[str(arm)][name] for name in ("mean_s", "low_s", "high_s")}
        row["overran"] = int(late.sum())
        row["caller_overrun_median_s"] = float(np.median(overrun_s[late])) if late.any() else math.nan
        row["caller_overrun_p90_s"] = math.nan if isinstance(high, TooFewRuns) else high.estimate
        row["caller_overrun_worst_s"] = float(overrun_s.max())
        for column in _MEANS:
            row |= _mean(group, column)
        rows.append(row)
    return pd.DataFrame(rows)


def _mean(group: pd.DataFrame, column: str) -> dict[str, float]:
    names = (column, f"{column}_low", f"{column}_high")
    values = group[column].to_numpy(dtype=np.float64)
    if np.isnan(values).any():
        return dict.fromkeys(names, math.nan)
    if len(values) < 2:
        return dict(zip(names, (float(values[0]), math.nan, math.nan), strict=True))
    result = studentised_interval((values,), _CONFIDENCE, _SEED, _RESAMPLES)
    # What is never negative has no mean below 0, whatever a studentised bound of few runs says.
    low = max(0.0, result.low) if (values >= 0).all() else result.low
    return dict(zip(names, (result.estimate, low, result.high), strict=True))


def _arms_shown(frame: pd.DataFrame, apart: Sequence[str]) -> pd.DataFrame:
    columns: dict[str, list[str]] = {"arm": [one_line(arm) for arm in frame["arm"]]}
    columns |= {heading(name): [_level(value) for value in frame[name]] for name in apart}
    columns["runs"] = [str(runs) for runs in frame["runs"]]
    rows = frame.to_dict("records")
    columns["answered in time"] = [f"{row['answered_in_time']} · {_share_text(row)}" for row in rows]
    columns["time to an answer (s)"] = [
        with_interval(row["time_to_answer_mean_s"], row["time_to_answer_low_s"], row["time_to_answer_high_s"], 2)
        for row in rows
    ]
    columns["overran (median, worst s)"] = [_overran(row) for row in rows]
    if frame["caller_overrun_p90_s"].notna().any():
        columns["caller overrun p90 (s)"] = [number(value, 3) for value in frame["caller_overrun_p90_s"]]
    for column in _MEANS:
        bounds = (frame[column], frame[f"{column}_low"], frame[f"{column}_high"])
        columns[_HEADINGS[column]] = [_mean_text(*values, _DIGITS[column]) for values in zip(*bounds, strict=True)]
    if frame["ended_by_budget"].any():
        columns["ended by a budget"] = [str(count) for count in frame["ended_by_budget"]]
    return pd.DataFrame(columns)


def _share_text(row: Mapping[Any, Any]) -> str:
    return f"{percent(row['share'])} [{percent(row['share_low'])}, {percent(row['share_high'])}]"


def _overran(row: Mapping[Any, Any]) -> str:
    """Return how many callers were late and by how much; "≥" before the worst if a run never ended."""
    if not row["overran"]:
        return "0"
    worst = f"{'≥ ' if row['unfinished'] else ''}{number(row['caller_overrun_worst_s'], 2)}"
    return f"{row['overran']} ({number(row['caller_overrun_median_s'], 2)}, {worst})"


def _mean_text(value: float, low: float, high: float, digits: int) -> str:
    """Format a mean with its interval; equal bounds mean that all runs are alike."""
    return f"{number(value, digits)} (all alike)" if low == high else with_interval(value, low, high, digits)


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
