"""Computes the frames of a scorecard; `Scorecard` documents them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.findings.decision_tables import DecisionTable
from docmind_lab.analysis.findings.measured_perf import COMPONENTS, Matrix, Measures, PerfMap, weighted_mean
from docmind_lab.analysis.findings.weights import (
    leaders,
    nearest_changes,
    shares_of_simplex,
    simplex_percent,
    winner_of,
)
from docmind_lab.core.errors import ConfigurationError

PERFS: Final = ("judged", "measured")
MAP_LEVELS: Final[Mapping[str, tuple[float, ...]]] = {
    "answered_zero": (0.0, 0.25, 0.5),
    "overrun_zero": (0.1, 0.25, 0.5, 1.0, 2.0, 4.0),
    "late_work_zero": (0.1, 0.25, 0.5, 1.0, 2.0, 4.0),
    "kept_zero": (0.0, 0.25, 0.5),
}
"""Values that each parameter of the map is given, all with all; 4 decision timeouts is what a horizon of 5 allows."""

_COMPONENT_STEP_PERCENT: Final = 20
_COMPONENT_WEIGHTS: Final = tuple(f"{name}_weight" for name in COMPONENTS)


@dataclass(frozen=True, eq=False)
class Basis:
    """The inputs of every frame of a scorecard.

    rows: arm → row of the table, for the arms that are its options. draws: draw × seed, how often each seed is drawn.
    """

    table: DecisionTable
    measures: Measures
    perf_map: PerfMap
    rows: Mapping[int, int]
    draws: Matrix

    def __repr__(self) -> str:
        options = f"{len(self.rows)} of {len(self.measures.arms)} arms are its options"
        return f"Basis of {self.table.name}: {options}, {len(self.measures.seeds)} seeds drawn {len(self.draws)} times"

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"

    @property
    def place(self) -> int:
        """The column of the criterion that is measured."""
        return self.table.criteria.index(self.table.measurable)

    @property
    def names(self) -> list[str]:
        """The labels of the options."""
        return [self.measures.arms[arm] for arm in self.rows]

    @property
    def weights(self) -> Matrix:
        """The weights of the criteria, as floats."""
        return np.array([float(weight) for weight in self.table.weights])

    @functools.cached_property
    def scores(self) -> Mapping[str, Matrix]:
        """The scores of the options, judged and with measured Perf: option × criterion."""
        judged = self.table.matrix()[list(self.rows.values())]
        measured = judged.copy()
        measured[:, self.place] = self.perf_map.perf(self.measures.means())[list(self.rows)]
        return dict(zip(PERFS, (judged, measured), strict=True))

    def totals_with(self, perf: Matrix) -> Matrix:
        """Return the options' totals at the table's weights with this Perf, which is on the last axis."""
        rest = np.delete(self.scores["judged"], self.place, axis=1) @ np.delete(self.weights, self.place)
        return np.asarray(rest + self.weights[self.place] * perf)

    def levels_of(self, labels: pd.Series[str]) -> pd.Series[str]:
        """Return the alternative of each label; "" for a label that is no arm's."""
        levels = dict(zip(self.measures.arms, self.measures.alternatives, strict=True))
        return labels.map(lambda label: levels.get(label, ""))


def rows_of_options(table: DecisionTable, measures: Measures) -> dict[int, int]:
    """Return arm → row of the table, for arms that are its options: alternatives without options of their own.

    Raises: ConfigurationError for one that was run in several ways, or fewer than two of them.
    """
    rows: dict[int, int] = {}
    for place, option in enumerate(table.options):
        kinds = zip(measures.alternatives, measures.options, strict=True)
        arms = [arm for arm, kind in enumerate(kinds) if kind == (option.alternative, "{}")]
        if len(arms) > 1:
            raise ConfigurationError(
                f"{option.alternative} was run in several ways ({', '.join(measures.arms[arm] for arm in arms)}): "
                "keep the runs of one, since the record scores it once"
            )
        rows |= dict.fromkeys(arms, place)
    if len(rows) < 2:
        known = ", ".join(option.alternative for option in table.options)
        raise ConfigurationError(f"a decision needs two options of {table.name} or more among the arms: {known}")
    return rows


def draw_seeds(seeds: int, resamples: int, seed: int) -> Matrix:
    """Draw seeds with replacement: return how often each one is drawn, draw × seed."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples).astype(np.float64)


def totals_frame(basis: Basis) -> pd.DataFrame:
    """Return `Scorecard.totals`: the options in the order of every figure, then arms that the record lacks."""
    measures, table, options = basis.measures, basis.table, list(basis.rows)
    perf = basis.perf_map.perf(measures.means())
    drawn = basis.perf_map.perf(measures.means(basis.draws))
    total, drawn_total = basis.totals_with(perf[options]), basis.totals_with(drawn[:, options])
    first = leaders(drawn_total)
    alone = first.sum(axis=1, keepdims=True) == 1
    frame = []
    for arm in sorted(range(len(measures.arms)), key=lambda arm: arm not in basis.rows):
        row: dict[str, Any] = {"option": measures.arms[arm], "alternative": measures.alternatives[arm]}
        low, high = _interval(drawn[:, arm])
        row |= {**dict.fromkeys(table.criteria, np.nan), "perf_measured": perf[arm], "perf_low": low, "perf_high": high}
        if arm in basis.rows:
            option, column = table.options[basis.rows[arm]], options.index(arm)
            row |= dict(zip(table.criteria, (float(score) for score in option.scores), strict=True))
            row["total_printed"] = float(option.printed_total)
            row["total_judged"] = float(basis.scores["judged"][column] @ basis.weights)
            row["total_measured"] = float(total[column])
            row["total_low"], row["total_high"] = _interval(drawn_total[:, column])
            row["first_share"] = float((first & alone)[:, column].mean())
            row["tied_share"] = float((first & ~alone)[:, column].mean())
        row["note"] = "" if arm in basis.rows else _no_total(table)
        frame.append(row)
    return pd.DataFrame(frame)


def components_frame(basis: Basis) -> pd.DataFrame:
    """Return the frame `Scorecard.components`."""
    measures = basis.measures
    means, drawn = measures.means(), measures.means(basis.draws)
    scores = basis.perf_map.score(means)
    weights = np.where(np.isnan(scores), 0.0, basis.perf_map.weights)
    # A caller overrun is always measured, but a map may give it no weight.
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    rows = []
    for (arm, label), (place, name) in itertools.product(enumerate(measures.arms), enumerate(COMPONENTS)):
        low, high = _interval(drawn[:, arm, place])
        rows.append(
            {
                "option": label,
                "alternative": measures.alternatives[arm],
                "component": name,
                "meaning": COMPONENTS[name],
                "measured": means[arm, place],
                "low": low,
                "high": high,
                "score": scores[arm, place],
                "weight": weights[arm, place],
            }
        )
    return pd.DataFrame(rows)


def simplex_frame(basis: Basis) -> pd.DataFrame:
    """Return the frame `Scorecard.simplex`."""
    frames = [shares_of_simplex(matrix, basis.names).assign(perf=perf) for perf, matrix in basis.scores.items()]
    frame = pd.concat(frames, ignore_index=True)
    frame["alternative"] = basis.levels_of(frame["option"])
    return frame[["perf", "option", "alternative", "wins_share", "ties_share"]]


def weight_map_frame(basis: Basis) -> pd.DataFrame:
    """Return the frame `Scorecard.weight_map`, in steps of 1 %."""
    criteria = list(basis.table.criteria)
    grid = simplex_percent(len(criteria))
    names = np.array([*basis.names, ""])
    frames = [
        pd.DataFrame(grid, columns=criteria).assign(perf=perf, winner=names[winner_of(grid / 100 @ matrix.T)])
        for perf, matrix in basis.scores.items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    frame["alternative"] = basis.levels_of(frame["winner"])
    return frame[["perf", *criteria, "winner", "alternative"]]


def nearest_frame(basis: Basis) -> pd.DataFrame:
    """Return the frame `Scorecard.nearest`."""
    rows = []
    for perf, matrix in basis.scores.items():
        winner = basis.names[int(np.argmax(matrix @ basis.weights))]
        for change in nearest_changes(matrix, list(basis.weights)):
            at = change.weights or (np.nan,) * len(basis.weights)
            row: dict[str, Any] = {"perf": perf, "winner": winner, "rival": basis.names[change.rival]}
            row["moved_percent"] = 100 * change.distance
            rows.append(row | {name: 100 * value for name, value in zip(basis.table.criteria, at, strict=True)})
    return pd.DataFrame(rows)


def maps_frame(basis: Basis) -> pd.DataFrame:
    """Return `Scorecard.maps`: all of `MAP_LEVELS` combined with component weights in steps of a fifth."""
    means = basis.measures.means()[list(basis.rows)]
    shares = simplex_percent(len(COMPONENTS), _COMPONENT_STEP_PERCENT) / 100
    # All of the weight on what was not measured says nothing of anybody; what was measured is the same in every map.
    shares = shares[~np.isnan(weighted_mean(means[None, :, :], shares[:, None, :])).any(axis=1)]
    levels = np.array(list(itertools.product(*MAP_LEVELS.values())))
    winners = []
    for values in levels:
        changes = dict(zip(MAP_LEVELS, (float(value) for value in values), strict=True))
        scores = dataclasses.replace(basis.perf_map, **changes).score(means)
        winners.append(winner_of(basis.totals_with(weighted_mean(scores[None, :, :], shares[:, None, :]))))
    columns = np.concatenate([np.repeat(levels, len(shares), axis=0), np.tile(shares, (len(levels), 1))], axis=1)
    frame = pd.DataFrame(columns, columns=[*MAP_LEVELS, *_COMPONENT_WEIGHTS])
    return frame.assign(winner=np.array([*basis.names, ""])[np.concatenate(winners)])


def _no_total(table: DecisionTable) -> str:
    others = " and ".join(name for name in table.criteria if name != table.measurable)
    return f"no total: {table.name} does not score its {others}"


def _interval(drawn: Matrix) -> tuple[float, float]:
    if np.isnan(drawn).all():
        return np.nan, np.nan
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return float(low), float(high)
