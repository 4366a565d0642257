"""Compares the runs of a study in virtual time with the same runs on the wall clock.

    result = agreement(virtual, wall)
    result                       # the three criteria and a table, a row for each alternative
    result.pairs                 # DataFrame, one row for each pair of runs

Virtual time leaves out what Python computes, so a real run is later by the CPU time on its path to the answer. Make
both studies at real scale: divided by a hundred, waits are no longer long beside that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import pandas as pd

from docmind_lab.core.alternative_catalogue import label_of, order_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.tables.frames import StudyTables

# The three criteria were set before anything was compared, and no constant of the simulation is fitted to them.
MEAN_ERROR: Final = 0.01
"""Greatest mean of |wall − virtual| / wall over the completions of all pairs."""
SAME_OUTCOME: Final = 0.98
"""Least share of pairs with the same outcome on both clocks."""
MISSES_WITHIN_S: Final = 0.25
"""How far from the deadline, seconds, a run may be whose outcome is another on the other clock."""

_KEY: Final = ["alternative", "alternative_options", "seed"]
_SAME: Final = (
    "question_id",
    "workload",
    "decision_timeout_s",
    "horizon_s",
    "latency_profile",
    "fault",
    "retries",
    "router_injection",
    "stops_on_disconnect",
    "server_behaviour",
    "adoption",
)


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(MakesFinding):
    """How closely the runs of one study in virtual time match the same runs on the wall clock.

    pairs: one row for each run that both studies have, ordered by alternative and seed. Columns: alternative,
    alternative_options, label, seed, question_id, decision_timeout_s; virtual_returned_at_s and wall_returned_at_s
    (when the caller was back; the horizon if only this clock saw no return by it, NaN if neither did); later_s
    (wall − virtual), error (|later_s| / wall); virtual_outcome, wall_outcome, same_outcome; from_deadline_s (of the two
    returns, the distance of the farther one from the deadline).
    unpaired: runs that only one of the studies has.
    """

    pairs: pd.DataFrame
    unpaired: int

    @property
    def mean_error(self) -> float:
        """The mean relative error of the completion times; NaN when no run returned."""
        return float(self.pairs["error"].mean())

    @property
    def same_outcome(self) -> float:
        """The share of pairs whose two runs have the same outcome."""
        return float(self.pairs["same_outcome"].mean())

    @property
    def misses(self) -> pd.DataFrame:
        """The pairs whose two runs have different outcomes, the farthest from the deadline first."""
        missed = self.pairs[~self.pairs["same_outcome"]]
        return missed.sort_values("from_deadline_s", ascending=False, ignore_index=True)

    @property
    def farthest_miss_s(self) -> float:
        """The distance of the farthest miss from the deadline, in seconds; 0 without a miss."""
        return float(self.misses["from_deadline_s"].max()) if len(self.misses) else 0.0

    def criteria(self) -> pd.DataFrame:
        """Return the three criteria of agreement, one row each: found, target (such as "≤ 0.01"), met.

        The index says what, with its unit. A NaN among what was found fails its criterion.
        """
        error, same, miss_s = self.mean_error, self.same_outcome, self.farthest_miss_s
        rows = {
            "mean completion error (share)": (error, f"≤ {MEAN_ERROR:g}", error <= MEAN_ERROR),
            "pairs with the same outcome (share)": (same, f"≥ {SAME_OUTCOME:g}", same >= SAME_OUTCOME),
            "farthest miss from the deadline (s)": (miss_s, f"≤ {MISSES_WITHIN_S:g}", miss_s <= MISSES_WITHIN_S),
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["found", "target", "met"])

    def by_alternative(self) -> pd.DataFrame:
        """Return one row for each alternative, indexed by label.

        Columns: pairs, mean_error (share), later_median_s and later_worst_s (wall − virtual, farthest from 0), misses.
        """
        groups = self.pairs.groupby("label", sort=False)
        return pd.DataFrame(
            {
                "pairs": groups.size(),
                "mean_error": groups["error"].mean(),
                "later_median_s": groups["later_s"].median(),
                "later_worst_s": groups["later_s"].agg(lambda each: max(each.dropna(), key=abs, default=math.nan)),
                "misses": groups["same_outcome"].agg(lambda each: int((~each).sum())),
            }
        )

    def finding(self) -> Finding:
        """Return the criteria, and a row for each alternative."""
        left_out = f", {self.unpaired} without a partner" if self.unpaired else ""
        title = f"{len(self.pairs)} pairs of runs, in virtual time and on the wall clock{left_out}"
        table = self.criteria().round(4)
        shown = table.assign(met=table["met"].map({True: "met", False: "not met"})).rename(columns={"met": ""})
        words = (title, shown, self.by_alternative().round(4))
        numbers = {"mean_error": self.mean_error, "same_outcome": self.same_outcome, "unpaired": self.unpaired}
        return Finding(words, numbers, {"pairs": self.pairs})


def agreement(virtual: StudyTables, wall: StudyTables) -> Agreement:
    """Compare the same runs (alternative, options and seed) on two clocks.

    Args:
        virtual: A study in virtual time.
        wall: A study on the wall clock, otherwise made alike.

    Raises:
        ConfigurationError: A study is on another clock, has a run twice or was made under other conditions (the message
            names the column), or the studies share no run.
    """
    return Agreement(*pairs_of(virtual.runs, wall.runs))


def pairs_of(virtual: pd.DataFrame, wall: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the pairs of the same runs on two clocks, and how many runs have no partner. Raises: as `agreement`."""
    sides = {name: _runs_on(runs, name) for name, runs in (("virtual", virtual), ("wall", wall))}
    both = sides["virtual"].merge(sides["wall"], on=_KEY, suffixes=("_virtual", "_wall"))
    if both.empty:
        raise ConfigurationError("the studies share no run: make both with the same seed and alternatives")
    for column in _SAME:
        one, other = both[f"{column}_virtual"], both[f"{column}_wall"]
        if (one != other).any():
            first = both[one != other].iloc[0]
            raise ConfigurationError(
                f"{column} differs between the clocks ({first[f'{column}_virtual']} and {first[f'{column}_wall']}): "
                "make both studies with the same options"
            )
    unpaired = len(sides["virtual"]) + len(sides["wall"]) - 2 * len(both)
    return _pairs(both), unpaired


def _runs_on(runs: pd.DataFrame, clock: str) -> pd.DataFrame:
    """Return the columns of a study's runs that are compared, levels as plain text."""
    clocks = sorted(set(runs["clock"].astype("str")))
    if clocks != [clock]:
        raise ConfigurationError(f"{clock}: its runs must be on the {clock} clock, not {', '.join(clocks) or 'none'}")
    levels = {name: "str" for name in runs.columns if isinstance(runs[name].dtype, pd.CategoricalDtype)}
    side = runs.astype(levels)[[*_KEY, *_SAME, "returned_at_s", "outcome"]]
    if side.duplicated(_KEY).any():
        raise ConfigurationError(f"{clock}: a run is there twice; pass one study, each seed asked once")
    return side


def _pairs(both: pd.DataFrame) -> pd.DataFrame:
    virtual_s, wall_s = both["returned_at_s_virtual"], both["returned_at_s_wall"]
    horizon_s, deadline_s = both["horizon_s_wall"], both["decision_timeout_s_wall"]
    # A return that never came on one clock was not before the horizon: the error is then a lower bound, but no gap.
    virtual_s = virtual_s.where(virtual_s.notna() | wall_s.isna(), horizon_s)
    wall_s = wall_s.where(wall_s.notna() | virtual_s.isna(), horizon_s)
    farther_s = pd.concat([(virtual_s - deadline_s).abs(), (wall_s - deadline_s).abs()], axis=1).max(axis=1)
    names = list(zip(both["alternative"], both["alternative_options"], strict=True))
    pairs = pd.DataFrame(
        {
            "alternative": both["alternative"],
            "alternative_options": both["alternative_options"],
            "label": [label_of(*name) for name in names],
            "seed": both["seed"],
            "question_id": both["question_id_wall"],
            "decision_timeout_s": deadline_s,
            "virtual_returned_at_s": virtual_s,
            "wall_returned_at_s": wall_s,
            "later_s": wall_s - virtual_s,
            "error": (wall_s - virtual_s).abs() / wall_s,
            "virtual_outcome": both["outcome_virtual"],
            "wall_outcome": both["outcome_wall"],
            "same_outcome": both["outcome_virtual"] == both["outcome_wall"],
            "from_deadline_s": farther_s,
        }
    )
    places = pd.Series([(order_of(*name), seed) for name, seed in zip(names, pairs["seed"], strict=True)])
    return pairs.loc[places.sort_values().index].reset_index(drop=True)
