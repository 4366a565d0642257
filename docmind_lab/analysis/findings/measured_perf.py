"""Measures the criterion Perf of a decision record, and maps the measurements to a score from 0 to 10.

    measures = measures_of(runs)          # per arm and seed
    PerfMap().score(measures.means())     # per arm and component, 0 to 10

ADR-056 does not say what its Perf means. Here it has four components, in the order of what a deadline is for: answers
that came in time, of those that could have; how long the caller waited beyond the deadline; what the servers did for
nobody afterwards; what the caller was left with. The map is one reading of it, and no more: `scorecard` varies it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.conditions import CONDITION, with_arms
from docmind_lab.analysis.page import Page, Shown
from docmind_lab.core.errors import ConfigurationError

Matrix = np.ndarray[Any, np.dtype[np.float64]]

CONTROL: Final = "unguarded"
COMPONENTS: Final = MappingProxyType(
    {
        "answered": "answers in time, as a share of those that the control had in time",
        "overrun": "mean caller overrun, in decision timeouts (no answer by the horizon counts with the horizon)",
        "late_work": "mean server-seconds spent after the deadline, in decision timeouts",
        "kept": "source recall returned, late or not, as a share of what the control had found by the deadline",
    }
)
"""What is measured of an arm, in the order of every array here. Each is NaN for all arms where nothing can be said."""


@dataclass(frozen=True, repr=False)
class PerfMap(Shown):
    """Maps measured components to scores: each in a straight line from 10 at its best value down to 0.

    The record gives no reason to prefer a component, so weights are equal by default. They are shares of the score, in
    any unit. A component that was not measured leaves its weight to the others.

    Args:
        answered_zero: The share, below 1, that is worth nothing; 1 and beyond is worth 10.
        overrun_zero: The multiple of the decision timeout, above 0, that is worth nothing; 0 is worth 10.
        late_work_zero: Late work at which the score is 0, as `overrun_zero`.
        kept_zero: As `answered_zero`.
        answered_weight: Weight of answers in time.
        overrun_weight: Weight of the caller's overrun.
        late_work_weight: Weight of the servers' work after the deadline.
        kept_weight: Weight of the sources that the caller got.

    Raises:
        ConfigurationError: A value cannot be used; the message names it.
    """

    answered_zero: float = 0.0
    overrun_zero: float = 1.0
    late_work_zero: float = 1.0
    kept_zero: float = 0.0
    answered_weight: float = 1.0
    overrun_weight: float = 1.0
    late_work_weight: float = 1.0
    kept_weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("answered_zero", "kept_zero"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be a share from 0 to below 1, not {getattr(self, name)}")
        for name in ("overrun_zero", "late_work_zero"):
            if not 0 < getattr(self, name) < np.inf:
                raise ConfigurationError(f"{name} must be a number of decision timeouts above 0")
        weights = [getattr(self, f"{name}_weight") for name in COMPONENTS]
        if min(weights) < 0 or not 0 < sum(weights) < np.inf:
            raise ConfigurationError("the weights of a PerfMap must be 0 or more, and one of them above 0")

    @property
    def weights(self) -> Matrix:
        """The share of each component, in the order of the components; they add up to 1."""
        values = np.array([getattr(self, f"{name}_weight") for name in COMPONENTS], dtype=np.float64)
        return np.asarray(values / values.sum())

    def score(self, means: Matrix) -> Matrix:
        """Return the score of each component, 0 to 10, NaN if not measured. means: components on the last axis."""
        worst = np.array([self.answered_zero, self.overrun_zero, self.late_work_zero, self.kept_zero])
        best = np.array([1.0, 0.0, 0.0, 1.0])
        return np.asarray(10.0 * np.clip((means - worst) / (best - worst), 0.0, 1.0))

    def perf(self, means: Matrix) -> Matrix:
        """Return Perf, 0 to 10: the weighted mean of the measured components; NaN when none has a weight."""
        return weighted_mean(self.score(means), self.weights)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each component: its weight, its meaning, and which values are worth 0 and 10."""
        return tuple(
            f"{name} ({share:.0%}): {COMPONENTS[name]}; {getattr(self, f'{name}_zero'):g} → 0, {_best(name):g} → 10"
            for name, share in zip(COMPONENTS, self.weights, strict=True)
        )

    def page(self) -> Page:
        """Return the map in words, with its numbers."""
        title = f"Perf: the weighted mean of {len(COMPONENTS)} components, each in a straight line from 0 to 10"
        return Page(title, (self.lines,))


def weighted_mean(scores: Matrix, weights: Matrix) -> Matrix:
    """Return the weighted mean of the known scores along the last axis; NaN when none with a weight is known."""
    there = np.where(np.isnan(scores), 0.0, weights)
    total = there.sum(axis=-1)
    return _share((there * np.nan_to_num(scores)).sum(axis=-1), total)


@dataclass(frozen=True, eq=False)
class Measures:
    """The measurements of each arm, summed over each seed's runs, so that seeds can be resampled.

    arms: labels, in the order of every figure; alternatives, options: the arm's level and its options. sums: seed × arm
    × (answers in time, overrun in timeouts, late work in timeouts, source recall returned, runs). control: seed ×
    (answers in time, source recall found by the deadline), of the control.
    """

    arms: tuple[str, ...]
    alternatives: tuple[str, ...]
    options: tuple[str, ...]
    seeds: tuple[int, ...]
    sums: Matrix
    control: Matrix

    def __repr__(self) -> str:
        return f"Measures: {len(self.arms)} arms over {len(self.seeds)} seeds, {', '.join(COMPONENTS)} of each"

    def means(self, times_drawn: Matrix | None = None) -> Matrix:
        """Return the components, arm × component; for resampled seeds, draw × arm × component.

        times_drawn: draw × seed.
        """
        drawn = np.ones((1, len(self.seeds))) if times_drawn is None else times_drawn
        sums = np.einsum("ds,sac->dac", drawn, self.sums)
        control = (drawn @ self.control)[:, None, :]
        answered, overrun, late_work, kept, runs = np.moveaxis(sums, -1, 0)
        components = [
            _share(answered, control[..., 0]),
            overrun / runs,
            late_work / runs,
            _share(kept, control[..., 1]),
        ]
        means = np.stack(components, axis=-1)
        # What is known of some arms only is no basis to compare all of them on.
        means = np.where(np.isnan(means).any(axis=-2, keepdims=True), np.nan, means)
        return means[0] if times_drawn is None else means


def measures_of(runs: pd.DataFrame) -> Measures:
    """Measure each arm, including the control.

    Several conditions count alike: overruns and late work are in decision timeouts, so that budgets can be added up.

    Raises: ConfigurationError when there is no control, when an arm has not met the seeds and conditions of the others
    (a mean over other questions is no comparison), or when a run is there twice.
    """
    if not (runs["alternative"].astype("str") == CONTROL).any():
        raise ConfigurationError(
            f"runs has no control: a scorecard sets every arm against what was possible; measure {CONTROL} with them"
        )
    frame = with_arms(runs)
    cells = frame.groupby([*CONDITION, "seed"], observed=True, sort=True).ngroup()
    _require_balance(frame, cells)
    budget_s = frame["decision_timeout_s"]
    overrun_s = frame["caller_overrun_s"].fillna(frame["horizon_s"] - budget_s)
    values = pd.DataFrame(
        {
            "answered": frame["answered_in_time"].astype("float64"),
            "overrun": overrun_s / budget_s,
            "late_work": frame["busy_after_deadline_s"] / budget_s,
            "kept": frame["source_recall"],
            "runs": 1.0,
        }
    )
    keys = [frame["seed"], frame["arm"]]
    by_seed = values.groupby(keys, observed=True, sort=True).agg(_sum)
    arms, seeds = list(frame["arm"].cat.categories), sorted(frame["seed"].unique())
    sums = by_seed.to_numpy(dtype=np.float64).reshape(len(seeds), len(arms), -1)
    first = frame.astype({"arm": "str"}).drop_duplicates("arm").set_index("arm").loc[arms]
    return Measures(
        arms=tuple(arms),
        alternatives=tuple(str(name) for name in first["alternative"]),
        options=tuple(str(options) for options in first["alternative_options"]),
        seeds=tuple(int(seed) for seed in seeds),
        sums=sums,
        control=_control_measures(frame),
    )


def _control_measures(frame: pd.DataFrame) -> Matrix:
    control = frame[frame["alternative"].astype("str") == CONTROL]
    if control["arm"].nunique() > 1:
        raise ConfigurationError("the control was run in several ways: keep its runs with one of retries, node_mode")
    values = control.assign(answered=control["answered_in_time"].astype("float64"))
    by_seed = values.groupby("seed", sort=True)[["answered", "recall_at_deadline"]]
    return by_seed.agg(_sum).to_numpy(dtype=np.float64)


def _require_balance(frame: pd.DataFrame, cells: pd.Series[int]) -> None:
    met = pd.crosstab(cells, frame["arm"].astype("str"))
    if (met > 1).to_numpy().any():
        raise ConfigurationError("runs has a run of one arm, condition and seed twice: keep one of each")
    missing = (met == 0).sum()
    if missing.any():
        raise ConfigurationError(
            f"{' '.join(str(missing.idxmax()).split())} has not met {missing.max()} of the {len(met)} seeds and "
            "conditions of the others: keep the runs that all arms have, or measure what is missing"
        )


def _sum(column: pd.Series[float]) -> float:
    # A sum with a NaN in it is NaN: what is known of some runs only is not known of the arm.
    return float(column.sum(skipna=False))


def _share(part: Matrix, whole: Matrix) -> Matrix:
    nothing = np.full(np.broadcast(part, whole).shape, np.nan)
    return np.asarray(np.divide(part, whole, out=nothing, where=whole > 0))


def _best(name: str) -> float:
    return 1.0 if name in ("answered", "kept") else 0.0
