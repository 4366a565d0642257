"""Which runs are drawn together, in which order, and how the reader is told what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pandas as pd

from docmind_lab.analysis.conditions import CONDITION
from docmind_lab.core.budgets import NO_BUDGETS, order_of_level
from docmind_lab.core.catalogue import label_of, rank_of
from docmind_lab.core.errors import ConfigurationError


class StudyTables(Protocol):
    """Whatever holds the three tables, with the columns that `docmind_lab.analysis.tables` documents."""

    @property
    def runs(self) -> pd.DataFrame:
        """One row per run."""
        ...

    @property
    def calls(self) -> pd.DataFrame:
        """One row per attempt and point of view."""
        ...

    @property
    def events(self) -> pd.DataFrame:
        """One row per event."""
        ...


def comparable(runs: pd.DataFrame, *, apart_from: str = "") -> pd.DataFrame:
    """The runs in the order of every figure, with columns `group` (0, 1, … of alternative and options) and `label`.

    apart_from: the one condition in which they may differ, of a figure that keeps its values apart.
    Raises: ConfigurationError when there are none, or when they were made under more than one decision timeout,
    horizon, workload, latency profile, fault, clock or second budget; it names the column and its values.
    """
    if runs.empty:
        raise ConfigurationError("runs is empty: there is nothing to draw; measure some runs first")
    # A median over two decision timeouts, or two faults, is of neither.
    for column in CONDITION:
        values = sorted(set(runs[column].tolist()))
        if len(values) > 1 and column != apart_from:
            shown = ", ".join(str(value) for value in values)
            raise ConfigurationError(
                f"the runs have several values of {column} ({shown}), and one picture has room for one: "
                f"keep the runs with one {column}"
            )
    plain = runs.astype({"alternative": "str", "alternative_options": "str"})
    plain["rank"] = [rank_of(name) for name in plain["alternative"]]
    plain["variant"] = plain["alternative_options"] != "{}"  # behind the alternative as it comes
    keys = ["rank", "alternative", "variant", "alternative_options"]
    ordered = plain.sort_values([*keys, "seed", "run_id"], ignore_index=True)
    ordered["group"] = ordered.groupby(keys, sort=True).ngroup().astype("int64")
    names = zip(ordered["alternative"], ordered["alternative_options"], strict=True)
    ordered["label"] = [label_of(name, options) for name, options in names]
    return ordered.drop(columns=["rank", "variant"])


def context_of(runs: pd.DataFrame) -> str:
    """What is seen, in a line: budgets, question or their number, latencies, faults, clock."""
    first = runs.iloc[0]
    seeds = runs["seed"].nunique()
    asked = f"question {first['question_id']} (seed {first['seed']})" if seeds == 1 else f"{seeds} questions"
    latencies = f"{first['latency_profile']} latencies" if first["latency_profile"] else "live services"
    fault = "no faults" if first["fault"] in ("", "none") else f"fault {first['fault']}"
    if runs["fault"].nunique() > 1:
        fault = "several faults"
    levels = sorted({str(level) for level in runs["second_budgets"]}, key=order_of_level)
    budgets = [] if levels == [NO_BUDGETS] else ["several second budgets" if len(levels) > 1 else levels[0]]
    parts = (
        first["workload"],
        f"{first['decision_timeout_s']:g} s decision timeout",
        *budgets,
        asked,
        latencies,
        fault,
        f"{first['clock']} clock",
    )
    return " · ".join(str(part) for part in parts)


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame whose columns are known, as named tuples."""
    return iter(frame.itertuples(index=False))
