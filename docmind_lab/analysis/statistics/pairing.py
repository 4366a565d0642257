"""The runs of two arms, seed by seed: what paired statistics are fed with.

pairs = paired_by_seed(runs, "A  cooperative", "B  hard timeout")
paired_mean_difference(*values_of(pairs, "work_overrun_s"))
paired_share_difference(*values_of(pairs, "answered_in_time"))
paired_restricted_mean_difference(*(answer_times(side) for side in (pairs.first, pairs.second)), tau_s=20.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from docmind_lab.analysis.statistics.answer_times import arms_of
from docmind_lab.analysis.statistics.incidence import Floats
from docmind_lab.core.errors import ConfigurationError


@dataclass(frozen=True, eq=False)
class Pairs:
    """Runs of two arms that met the same seeds. first, second: rows of `runs`, indexed by seed, in the same order.

    left_out: runs whose seed only one of the arms met.
    """

    first: pd.DataFrame
    second: pd.DataFrame
    left_out: int

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"Pairs: {len(self)} seeds that both arms met, {self.left_out} runs left out"


def paired_by_seed(runs: pd.DataFrame, first: str, second: str) -> Pairs:
    """The runs of two arms over the seeds that both met, ascending.

    runs: of one condition. first, second: arms as `conditions.with_arms` calls them.
    Raises: ConfigurationError for an unknown arm, several conditions, a seed twice in an arm, or no seed in common.
    """
    arms = dict(arms_of(runs))
    sides = []
    for name in (first, second):
        if name not in arms:
            raise ConfigurationError(f"no arm is called {name!r}: choose among {', '.join(map(repr, arms))}")
        side = arms[name].set_index("seed").sort_index()
        if side.index.has_duplicates:
            twice = side.index[side.index.duplicated()][0]
            raise ConfigurationError(f"{name!r} met seed {twice} more than once: keep one run of each seed")
        sides.append(side)
    both = sides[0].index.intersection(sides[1].index)
    if both.empty:
        raise ConfigurationError(f"{first!r} and {second!r} share no seed: compare them as independent arms")
    left_out = len(sides[0]) + len(sides[1]) - 2 * len(both)
    return Pairs(sides[0].loc[both], sides[1].loc[both], left_out)


def values_of(pairs: Pairs, column: str) -> tuple[Floats, Floats]:
    """A column of both sides as numbers, booleans as 0 and 1; see `column_values`."""
    return column_values(pairs.first, column), column_values(pairs.second, column)


def column_values(runs: pd.DataFrame, column: str) -> Floats:
    """A column of `runs` as numbers, one for each run: none is left out.

    An unfinished run counts in caller_overrun_s with all of its horizon past the deadline, a lower bound.
    Raises: ConfigurationError for a column that is not there, or a number that is not known (as what a live endpoint's
    server did).
    """
    if column not in runs:
        raise ConfigurationError(f"runs has no column {column!r}: see docs/data-dictionary.md")
    values = runs[column].to_numpy(dtype="float64", na_value=np.nan)
    if column == "caller_overrun_s":
        beyond_s = (runs["horizon_s"] - runs["decision_timeout_s"]).to_numpy(dtype="float64")
        values = np.where(np.isnan(values), beyond_s, values)
    if np.isnan(values).any():
        raise ConfigurationError(f"{column} is not known for {int(np.isnan(values).sum())} runs: choose another column")
    return values
