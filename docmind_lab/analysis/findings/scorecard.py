"""The scorecard: a decision record's table with Perf measured instead of judged, and what would change its decision.

    card = scorecard(study.runs)
    card.totals                 # one row per option of the record, then the arms it does not know
    card.components             # what Perf is made of: measured, score, weight
    card.simplex, card.nearest  # under which weights which option wins; the nearest that change the decision
    card.maps                   # the decision under other maps from measures to scores

The other columns are those of the record: nobody has measured complexity or alignment here, and nobody invents them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.conditions import budgets_in_words, varying
from docmind_lab.analysis.findings import scorecard_words
from docmind_lab.analysis.findings.decision_tables import DecisionTable, decision_table
from docmind_lab.analysis.findings.measured_perf import (
    COMPONENTS,
    Matrix,
    Measures,
    PerfMap,
    measures_of,
    weighted_mean,
)
from docmind_lab.analysis.findings.weights import leaders, simplex_percent, winner_of
from docmind_lab.analysis.page import Page, Shown
from docmind_lab.analysis.text import join_names
from docmind_lab.core.errors import ConfigurationError

PERFS: Final = ("judged", "measured")
MAP_LEVELS: Final[Mapping[str, tuple[float, ...]]] = {
    "answered_zero": (0.0, 0.25, 0.5),
    "overrun_zero": (0.1, 0.25, 0.5, 1.0, 2.0, 4.0),
    "late_work_zero": (0.1, 0.25, 0.5, 1.0, 2.0, 4.0),
    "kept_zero": (0.0, 0.25, 0.5),
}
"""Values that each parameter of the map is given, all with all; 4 decision timeouts is what a horizon of 5 allows."""

_RESAMPLES: Final = 2000
_COMPONENT_STEP_PERCENT: Final = 20


@dataclass(frozen=True, eq=False, repr=False)
class Scorecard(Shown):
    """A decision table with measured Perf. Options are called as in every figure ("A  cooperative"); scores and totals
    go from 0 to 10. Intervals are 95 % percentile bootstrap intervals over seeds, the same seeds drawn for every arm.

    totals: one row per arm: option, alternative, a column for each criterion as judged (NaN: the record has none),
    perf_measured, perf_low, perf_high, total_judged, total_measured, total_low, total_high, first_share (of the
    resamples in which it led alone), note.
    components: one row per arm and component: option, alternative, component, measured, score, weight (0 for one that
    was not measured).
    weight_map: one row per Perf (judged, measured) and weights of a grid in steps of 1 %: perf, a column for each
    criterion in percent, winner ("" where several share the lead), alternative.
    nearest: one row per Perf and rival of its winner, nearest first: perf, winner, rival, moved_percent (weight to be
    given to other criteria, half of the L1 distance; inf: no weights do), a column for each criterion with the weight
    in whole percent under which the rival leads.
    maps: one row per other map: the parameters of `PerfMap`, winner ("" for a tie).
    """

    table: DecisionTable
    perf_map: PerfMap
    totals: pd.DataFrame
    components: pd.DataFrame
    weight_map: pd.DataFrame
    nearest: pd.DataFrame
    maps: pd.DataFrame
    seeds: int
    context: str

    @property
    def scored(self) -> pd.DataFrame:
        """The rows of `totals` that are options of the record."""
        return self.totals[self.totals["total_judged"].notna()]

    @property
    def simplex(self) -> pd.DataFrame:
        """The share of all weights under which each option leads alone: perf, option, alternative, wins_share."""
        known = self.scored[["option", "alternative"]]
        frames = []
        for perf, cells in self.weight_map.groupby("perf", sort=False):
            wins = cells["winner"].value_counts() / len(cells)
            frames.append(known.assign(perf=perf, wins_share=known["option"].map(wins).fillna(0.0)))
        return pd.concat(frames, ignore_index=True)[["perf", "option", "alternative", "wins_share"]]

    @property
    def decision(self) -> dict[str, str]:
        """The option that leads at the weights of the table, for each Perf (judged, measured); "" for a tie."""
        winners = {perf: int(winner_of(self.scored[f"total_{perf}"].to_numpy(dtype=np.float64))) for perf in PERFS}
        return {perf: "" if place < 0 else str(self.scored["option"].iloc[place]) for perf, place in winners.items()}

    @property
    def changed_share(self) -> float:
        """The share of other maps under which another option wins, or several share the lead."""
        return float((self.maps["winner"] != self.decision["measured"]).mean())

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the findings, one sentence each."""
        return scorecard_words.sentences_of(self)

    def page(self) -> Page:
        """Return table, map and findings."""
        perf = self.perf_map.page()
        title = f"{self.table.name} with measured Perf · {self.context} · {self.seeds} seeds"
        return Page(title, (scorecard_words.display_table(self), perf.title, *perf.blocks, self.sentences))


def scorecard(
    runs: pd.DataFrame,
    table: str = "ADR-056",
    perf_map: PerfMap | None = None,
    *,
    resamples: int = _RESAMPLES,
    seed: int = 7,
) -> Scorecard:
    """Return a record's decision table with Perf as these runs measured it.

        card = scorecard(study.runs)
        scorecard(study.runs, perf_map=PerfMap(overrun_zero=0.25, answered_weight=2))

    Args:
        runs: The `runs` table of a study, the control among its arms; several conditions count alike.
        table: A record whose table has a criterion that a study measures.
        perf_map: How measures become scores; None for `PerfMap()`.
        resamples: Number of resamples of the bootstrap.
        seed: Seed of the bootstrap.

    Raises:
        ConfigurationError: The table has no such criterion, the runs cannot be compared, or an option of the record was
            run in several ways.
    """
    decided, used = decision_table(table), perf_map or PerfMap()
    if not decided.measurable:
        raise ConfigurationError(
            f"table {table} has no criterion that a study of deadlines measures; decision_table({table!r}) holds what "
            "can be said of it"
        )
    measures = measures_of(runs)
    rows = _rows_of_options(decided, measures)
    judged = decided.matrix()[list(rows.values())]
    measured = judged.copy()
    measured[:, decided.place] = used.perf(measures.means())[list(rows)]
    scores = dict(zip(PERFS, (judged, measured), strict=True))
    names = [measures.arms[arm] for arm in rows]
    totals = _totals(decided, measures, used, rows, _draws(len(measures.seeds), resamples, seed))
    weight_map = _weight_map(decided, scores, names, measures)
    return Scorecard(
        table=decided,
        perf_map=used,
        totals=totals,
        components=_components(measures, used),
        weight_map=weight_map,
        nearest=_nearest(decided, weight_map, totals),
        maps=_maps(decided, measures, used, rows),
        seeds=len(measures.seeds),
        context=_context(runs),
    )


def _rows_of_options(table: DecisionTable, measures: Measures) -> dict[int, int]:
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


def _draws(seeds: int, resamples: int, seed: int) -> Matrix:
    """Draw seeds with replacement: return how often each one is drawn, draw × seed."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=resamples).astype(np.float64)


def _totals_with(table: DecisionTable, options: list[int], perf: Matrix) -> Matrix:
    """Return the totals of these rows of the table with this Perf, whose last axis is the options."""
    weights = table.shares()
    judged = table.matrix()[options]
    rest = np.delete(judged, table.place, axis=1) @ np.delete(weights, table.place)
    return np.asarray(rest + weights[table.place] * perf)


def _totals(
    table: DecisionTable, measures: Measures, perf_map: PerfMap, rows: Mapping[int, int], draws: Matrix
) -> pd.DataFrame:
    """Return `Scorecard.totals`: the options in the order of every figure, then arms that the record lacks."""
    arms, options = list(rows), list(rows.values())
    perf, drawn = perf_map.perf(measures.means()), perf_map.perf(measures.means(draws))
    judged = table.matrix()[options]
    totals, drawn_totals = (_totals_with(table, options, each[..., arms]) for each in (perf, drawn))
    first = leaders(drawn_totals)
    alone = first & (first.sum(axis=1, keepdims=True) == 1)
    others = " and ".join(name for name in table.criteria if name != table.measurable)
    frame = []
    for arm in sorted(range(len(measures.arms)), key=lambda arm: arm not in rows):
        row: dict[str, Any] = {"option": measures.arms[arm], "alternative": measures.alternatives[arm]}
        row |= dict.fromkeys(table.criteria, np.nan) | _with_bounds("perf", float(perf[arm]), drawn[:, arm])
        if arm in rows:
            place = arms.index(arm)
            row |= dict(zip(table.criteria, judged[place].tolist(), strict=True))
            row["total_judged"] = float(judged[place] @ table.shares())
            row |= _with_bounds("total", float(totals[place]), drawn_totals[:, place])
            row["first_share"] = float(alone[:, place].mean())
        row["note"] = "" if arm in rows else f"no total: {table.name} does not score its {others}"
        frame.append(row)
    return pd.DataFrame(frame)


def _with_bounds(name: str, value: float, drawn: Matrix) -> dict[str, float]:
    low, high = (np.nan, np.nan) if np.isnan(drawn).all() else np.nanpercentile(drawn, [2.5, 97.5])
    return {f"{name}_measured": value, f"{name}_low": float(low), f"{name}_high": float(high)}


def _components(measures: Measures, perf_map: PerfMap) -> pd.DataFrame:
    means = measures.means()
    scores = perf_map.score(means)
    weights = np.where(np.isnan(scores), 0.0, perf_map.weights)
    # A caller overrun is always measured, but a map may give it no weight.
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    several = len(COMPONENTS)
    return pd.DataFrame(
        {
            "option": np.repeat(measures.arms, several),
            "alternative": np.repeat(measures.alternatives, several),
            "component": np.tile(list(COMPONENTS), len(measures.arms)),
            "measured": means.ravel(),
            "score": scores.ravel(),
            "weight": weights.ravel(),
        }
    )


def _weight_map(
    table: DecisionTable, scores: Mapping[str, Matrix], names: list[str], measures: Measures
) -> pd.DataFrame:
    grid = simplex_percent(len(table.criteria))
    frames = []
    for perf, matrix in scores.items():
        winner = np.array([*names, ""])[winner_of(grid / 100 @ matrix.T)]
        frames.append(pd.DataFrame(grid, columns=list(table.criteria)).assign(perf=perf, winner=winner))
    frame = pd.concat(frames, ignore_index=True)
    levels = dict(zip(measures.arms, measures.alternatives, strict=True)) | {"": ""}
    return frame.assign(alternative=frame["winner"].map(levels))


def _nearest(table: DecisionTable, weight_map: pd.DataFrame, totals: pd.DataFrame) -> pd.DataFrame:
    """Return `Scorecard.nearest`: of all weights in whole percent under which a rival leads, the nearest."""
    rows, criteria = [], list(table.criteria)
    scored = totals[totals["total_judged"].notna()]
    names = list(scored["option"])
    for perf, cells in weight_map.groupby("perf", sort=False):
        winner = names[int(np.argmax(scored[f"total_{perf}"]))]
        moved = (cells[criteria] - 100 * table.shares()).abs().sum(axis=1) / 2
        for rival in [name for name in names if name != winner]:
            under = moved[cells["winner"] == rival]
            at = cells.loc[moved.index == under.idxmin(), criteria].iloc[0] if len(under) else {}
            rows.append({"perf": perf, "winner": winner, "rival": rival, "moved_percent": under.min(), **at})
    frame = pd.DataFrame(rows, columns=["perf", "winner", "rival", "moved_percent", *criteria])
    frame["moved_percent"] = frame["moved_percent"].fillna(np.inf)
    return frame.sort_values(["perf", "moved_percent"], kind="stable", ignore_index=True)


def _maps(table: DecisionTable, measures: Measures, perf_map: PerfMap, rows: Mapping[int, int]) -> pd.DataFrame:
    """Return `Scorecard.maps`: all of `MAP_LEVELS` combined with component weights in steps of a fifth."""
    means = measures.means()[list(rows)]
    shares = simplex_percent(len(COMPONENTS), _COMPONENT_STEP_PERCENT) / 100
    # All of the weight on what was not measured says nothing of anybody; what was measured is the same in every map.
    shares = shares[~np.isnan(weighted_mean(means[None, :, :], shares[:, None, :])).any(axis=1)]
    levels = np.array(list(itertools.product(*MAP_LEVELS.values())))
    winners = []
    for values in levels:
        changes = dict(zip(MAP_LEVELS, (float(value) for value in values), strict=True))
        scores = dataclasses.replace(perf_map, **changes).score(means)
        perf = weighted_mean(scores[None, :, :], shares[:, None, :])
        winners.append(winner_of(_totals_with(table, list(rows.values()), perf)))
    columns = np.concatenate([np.repeat(levels, len(shares), axis=0), np.tile(shares, (len(levels), 1))], axis=1)
    frame = pd.DataFrame(columns, columns=[*MAP_LEVELS, *(f"{name}_weight" for name in COMPONENTS)])
    return frame.assign(winner=np.array([*(measures.arms[arm] for arm in rows), ""])[np.concatenate(winners)])


def _context(runs: pd.DataFrame) -> str:
    timeouts = join_names([f"{value:g}" for value in sorted(runs["decision_timeout_s"].unique())])
    columns = ("latency_profile", "fault", "clock")
    latencies, faults, clocks = (join_names(sorted({str(value) for value in runs[name]})) for name in columns)
    named = ("decision_timeout_s", *columns, "second_budgets")
    rest = [f"several values of {column}" for column in varying(runs) if column not in named]
    conditions = [f"{latencies or 'live'} latencies", f"fault {faults}", *budgets_in_words(runs), f"{clocks} clock"]
    return " · ".join([f"{timeouts} s decision timeout", *conditions, *rest])
