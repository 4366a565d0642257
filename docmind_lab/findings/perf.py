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
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.decision_tables import Matrix
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.tables.conditions import CONDITION, CONTROL, with_arms

COMPONENTS = MappingProxyType(
    {
        "answered": "answers in time, as a share of those that the control had in time",
        "overrun": "mean caller overrun, in decision timeouts (no answer by the horizon counts with the horizon)",
        "late_work": "mean server-seconds spent after the deadline, in decision timeouts",
        "kept": "source recall returned, late or not, as a share of what the control had found by the deadline",
    }
)
"""What is measured of an arm, in the order of every array here. Each is NaN for all arms where nothing can be said."""
_BEST = np.array([1.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True, repr=False)
class PerfMap(MakesFinding):
    """Maps measured components to scores: each in a straight line from 10 at its best value down to 0.

    The record gives no reason to prefer a component, so weights are equal by default. A component that was not measured
    leaves its weight to the others.

    Args:
        zeros: The value of each component, in the order of `COMPONENTS`, that is worth nothing: a share below 1, or a
            number of decision timeouts above 0.
        weights: The weight of each component, in any unit.

    Raises:
        ConfigurationError: A value cannot be used; the message names it.
    """

    zeros: tuple[float, ...] = (0.0, 1.0, 1.0, 0.0)
    weights: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        for name, zero, best in zip(COMPONENTS, self.zeros, _BEST, strict=True):
            if not (0 <= zero < 1 if best else 0 < zero < np.inf):
                wanted = "a share from 0 to below 1" if best else "a number of decision timeouts above 0"
                raise ConfigurationError(f"zeros: that of {name} must be {wanted}, not {zero}")
        if len(self.weights) != len(COMPONENTS) or min(self.weights) < 0 or not 0 < sum(self.weights) < np.inf:
            raise ConfigurationError("weights must be four numbers, 0 or more, and one of them above 0")

    @property
    def shares(self) -> Matrix:
        """The weights as shares of 1."""
        return np.array(self.weights, dtype=np.float64) / sum(self.weights)

    def score(self, means: Matrix) -> Matrix:
        """Return the score of each component, 0 to 10, NaN if not measured. means: components on the last axis."""
        worst = np.array(self.zeros)
        return np.asarray(10.0 * np.clip((means - worst) / (_BEST - worst), 0.0, 1.0))

    def perf(self, means: Matrix) -> Matrix:
        """Return Perf, 0 to 10: the weighted mean of the measured components; NaN when none has a weight."""
        return weighted_mean(self.score(means), self.shares)

    @property
    def lines(self) -> tuple[str, ...]:
        """A line for each component: its weight, its meaning, and which values are worth 0 and 10."""
        numbers = zip(COMPONENTS.items(), self.shares, self.zeros, _BEST, strict=True)
        return tuple(
            f"{name} ({share:.0%}): {words}; {zero:g} → 0, {best:g} → 10"
            for (name, words), share, zero, best in numbers
        )

    def finding(self) -> Finding:
        """Return the map in words, with its numbers."""
        title = f"Perf: the weighted mean of {len(COMPONENTS)} components, each in a straight line from 0 to 10"
        return Finding(
            (
                title,
                self.lines,
            )
        )


def weighted_mean(scores: Matrix, weights: Matrix) -> Matrix:
    """Return the weighted mean of the known scores along the last axis; NaN when none with a weight is known."""
    there = np.where(np.isnan(scores), 0.0, weights)
    return _share((there * np.nan_to_num(scores)).sum(axis=-1), there.sum(axis=-1))


@dataclass(frozen=True, eq=False)
class Measures:
    """The measurements of each arm, summed over each seed's runs, so that seeds can be resampled.

    arms: a row for each: arm, alternative, alternative_options, in the order of every figure. sums: seed × arm ×
    (answers in time, overrun in timeouts, late work in timeouts, source recall returned, runs). control: seed ×
    (answers in time, source recall found by the deadline), of the control.
    """

    arms: pd.DataFrame
    sums: Matrix
    control: Matrix

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.control)

    def means(self, times_drawn: Matrix) -> Matrix:
        """Return the components of resampled seeds, draw × arm × component. times_drawn: draw × seed."""
        answered, overrun, late_work, kept, runs = np.einsum("ds,sac->cda", times_drawn, self.sums)
        control = (times_drawn @ self.control)[:, None, :]
        components = [
            _share(answered, control[..., 0]),
            overrun / runs,
            late_work / runs,
            _share(kept, control[..., 1]),
        ]
        means = np.stack(components, axis=-1)
        # What is known of some arms only is no basis to compare all of them on.
        return np.where(np.isnan(means).any(axis=-2, keepdims=True), np.nan, means)


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
    frame = with_arms(runs).astype({"alternative": "str", "alternative_options": "str"})
    _require_balance(frame)
    budget_s = frame["decision_timeout_s"]
    values = pd.DataFrame(
        {
            "answered": frame["answered_in_time"].astype("float64"),
            "overrun": frame["caller_overrun_s"].fillna(frame["horizon_s"] - budget_s) / budget_s,
            "late_work": frame["busy_after_deadline_s"] / budget_s,
            "kept": frame["source_recall"],
            "runs": 1.0,
            "found": frame["recall_at_deadline"],
        }
    )
    # A sum with a NaN in it is NaN: what is known of some runs only is not known of the arm.
    by_seed = values.groupby([frame["seed"], frame["arm"]], observed=True, sort=True).sum(skipna=False)
    arms = frame.drop_duplicates("arm").sort_values("arm")[["arm", "alternative", "alternative_options"]]
    if (arms["alternative"] == CONTROL).sum() > 1:
        raise ConfigurationError("the control was run in several ways: keep its runs with one of retries, node_mode")
    sums = by_seed.to_numpy(dtype=np.float64).reshape(-1, len(arms), len(values.columns))
    of_control = sums[:, (arms["alternative"] == CONTROL).to_numpy(), :][:, 0, :]
    return Measures(arms.astype({"arm": "str"}).reset_index(drop=True), sums[..., :-1], of_control[:, [0, -1]])


def _require_balance(frame: pd.DataFrame) -> None:
    cells = frame.groupby([*CONDITION, "seed"], observed=True, sort=True).ngroup()
    met = pd.crosstab(cells, frame["arm"].astype("str"))
    if (met > 1).to_numpy().any():
        raise ConfigurationError("runs has a run of one arm, condition and seed twice: keep one of each")
    missing = (met == 0).sum()
    if missing.any():
        raise ConfigurationError(
            f"{' '.join(str(missing.idxmax()).split())} has not met {missing.max()} of the {len(met)} seeds and "
            "conditions of the others: keep the runs that all arms have, or measure what is missing"
        )


def _share(part: Matrix, whole: Matrix) -> Matrix:
    nothing: Any = np.full(np.broadcast(part, whole).shape, np.nan)
    return np.asarray(np.divide(part, whole, out=nothing, where=whole > 0))
