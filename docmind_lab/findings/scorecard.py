"""The scorecard: a decision record's table with Perf measured instead of judged, and what would change its decision.

    card = scorecard(study.runs)
    card.totals                 # one row per option of the record, then the arms it does not know
    card.components             # what Perf is made of: measured, score, weight
    card.simplex                # under which weights which option wins
    card.maps                   # the decision under other maps from measures to scores

ADR-056 does not say what its Perf means. Here it has four components, in the order of what a deadline is for: answers
that came in time, of those that could have; how long the caller waited beyond the deadline; what the servers did for
nobody afterwards; what the caller was left with. The map is one reading of it, and no more, so it is varied. The other
columns are those of the record: nobody has measured complexity or alignment here, and nobody invents them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import join_names, number, one_line, percent, with_interval
from docmind_lab.findings.decision_tables import (
    DecisionTable,
    Matrix,
    decision_table,
    leaders,
    weights_in_steps,
    winner_of,
)
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.tables.conditions import CONDITION, CONTROL, conditions_in_words, with_arms

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

PERFS: Final = ("judged", "measured")
# The zeros that other maps have, all with all; 4 decision timeouts is what a horizon of 5 allows.
_SHARES: Final = (0.0, 0.25, 0.5)
_TIMEOUTS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
_COMPONENT_STEP_PERCENT: Final = 20
# Below this many seeds a percentile bootstrap interval is known to be too narrow (Efron and Tibshirani, An
# Introduction to the Bootstrap, 1993, chapter 13: it inherits the plug-in variance, short by 1/n).
_FEW_SEEDS: Final = 20


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
                range_text = "a share from 0 to below 1" if best else "a number of decision timeouts above 0"
                raise ConfigurationError(f"zeros: that of {name} must be {range_text}, not {zero}")
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

    def perf(self, means: Matrix, weights: Matrix | None = None) -> Matrix:
        """Return Perf, 0 to 10: the weighted mean of the measured components; NaN when none has a weight.

        weights: of the components, on the last axis, in place of those of the map.
        """
        scores = self.score(means)
        known = np.where(np.isnan(scores), 0.0, self.shares if weights is None else weights)
        return _share((known * np.nan_to_num(scores)).sum(axis=-1), known.sum(axis=-1))

    def finding(self) -> Finding:
        """Return for each component its weight, its meaning, and which values are worth 0 and 10."""
        numbers = zip(COMPONENTS.items(), self.shares, self.zeros, _BEST, strict=True)
        lines = tuple(
            f"{name} ({share:.0%}): {words}; {zero:g} → 0, {best:g} → 10"
            for (name, words), share, zero, best in numbers
        )
        title = f"Perf: the weighted mean of {len(COMPONENTS)} components, each in a straight line from 0 to 10"
        return Finding((title, lines))


@dataclass(frozen=True, eq=False, repr=False)
class Scorecard(MakesFinding):
    """A decision table with measured Perf. Options are called as in every figure ("A  cooperative"); scores and totals
    go from 0 to 10. Intervals are 95 % percentile bootstrap intervals over seeds, the same seeds drawn for every arm.

    totals: one row per arm: option, alternative, a column for each criterion as judged (NaN: the record has none),
    perf_measured, perf_low, perf_high, total_judged, total_measured, total_low, total_high, first_share (of the
    resamples in which it led alone), note.
    components: one row per arm and component: option, alternative, component, measured, score, weight (0 for one that
    was not measured).
    weight_map: one row per Perf (judged, measured) and weights of a grid in steps of 1 %: perf, a column for each
    criterion in percent, winner ("" where several share the lead).
    maps: one row per other map: zero and weight of each component (answered_zero, …), winner ("" for a tie).
    """

    table: DecisionTable
    perf_map: PerfMap
    totals: pd.DataFrame
    components: pd.DataFrame
    weight_map: pd.DataFrame
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
            wins = known["option"].map(cells["winner"].value_counts() / len(cells)).fillna(0.0)
            frames.append(known.assign(perf=str(perf), wins_share=wins))
        return pd.concat(frames, ignore_index=True)[["perf", "option", "alternative", "wins_share"]]

    @property
    def decision(self) -> dict[str, str]:
        """The option that leads at the weights of the table, for each Perf (judged, measured); "" for a tie."""
        names = [*self.scored["option"], ""]
        return {perf: names[int(winner_of(self.scored[f"total_{perf}"].to_numpy()))] for perf in PERFS}

    @property
    def changed_share(self) -> float:
        """The share of other maps under which another option wins, or several share the lead."""
        return float((self.maps["winner"] != self.decision["measured"]).mean())

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings, one sentence each."""
        return (*self.table.sentences(), *self._totals_words(), *self._weights_words(), *self._limits())

    def display_table(self) -> pd.DataFrame:
        """Return the totals, rounded, with "judged" and "measured" in the headings."""
        totals = self.totals
        columns = {f"{name} (judged)": [number(v, 1) for v in totals[name]] for name in self.table.criteria}
        columns[f"{self.table.measurable} (measured)"] = _intervals(totals, "perf", 1)
        columns["total (judged)"] = [number(v, 2) for v in totals["total_judged"]]
        columns["total (measured)"] = _intervals(totals, "total", 2)
        columns["first in"] = [percent(v) for v in totals["first_share"]]
        return pd.DataFrame(columns, index=pd.Index(totals["option"], name=None))

    def finding(self) -> Finding:
        """Return table, map and findings."""
        title = f"{self.table.name} with measured Perf · {self.context} · {self.seeds} seeds"
        words = (title, self.display_table(), *self.perf_map.finding().words, self.sentences)
        numbers = {"decision": self.decision, "changed_share": self.changed_share, "seeds": self.seeds}
        return Finding(words, numbers, {"totals": self.totals, "components": self.components})

    def _totals_words(self) -> Iterator[str]:
        measurable, known = self.table.measurable, self.scored.to_dict("records")
        moved = [
            f"{one_line(row['option'])} {number(row[measurable], 1)} judged, {number(row['perf_measured'], 1)} measured"
            for row in known
        ]
        yield f"{measurable}: {'; '.join(moved)}."
        judged, measured = (one_line(self.decision[perf]) for perf in PERFS)
        if not measured:
            yield "With measured Perf several options share the lead."
            return
        row = next(row for row in known if row["option"] == self.decision["measured"])
        was = "as it did as judged" if judged == measured else f"where {judged or 'several'} led as judged"
        total = with_interval(row["total_measured"], row["total_low"], row["total_high"], 2)
        yield (
            f"With measured {measurable} {measured} leads, {was}, with {total} of 10 (95 % bootstrap interval); it led "
            f"alone in {percent(row['first_share'])} of the resamples."
        )

    def _weights_words(self) -> Iterator[str]:
        """Yield which weights and maps would change the decision."""
        for perf, frame in self.simplex.groupby("perf", sort=False):
            winning = frame[frame["wins_share"] > 0].sort_values("wins_share", ascending=False, kind="stable")
            shares = zip(winning["option"], winning["wins_share"], strict=True)
            phrases = [f"{one_line(option)} leads under {_share_text(share)}" for option, share in shares]
            leads = join_names(phrases) if phrases else "no option leads alone"
            yield f"Of all weights, with {perf} {self.table.measurable}, {leads}."
        changed = self.maps.loc[self.maps["winner"] != self.decision["measured"], "winner"].value_counts()
        who = [f"{one_line(str(name)) or 'a tie'} in {count:,}" for name, count in changed.items()]
        yield (
            f"Under {len(self.maps):,} other maps from measures to scores the decision changes in "
            f"{percent(self.changed_share, 1)} of them{f' ({join_names(who)})' if who else ''}."
        )

    def _limits(self) -> Iterator[str]:
        unknown = self.totals[self.totals["total_judged"].isna()]
        if len(unknown):
            names = join_names([one_line(name) for name in unknown["option"]])
            yield f"{names}: measured {self.table.measurable} and {unknown['note'].iloc[0]}."
        control = self.totals[self.totals["alternative"] == CONTROL].iloc[0]
        yield (
            f"The control, which enforces nothing, has {number(control['perf_measured'], 1)} on this map: read every "
            f"other {self.table.measurable} against that."
        )
        unmeasured = sorted(set(self.components.loc[self.components["measured"].isna(), "component"]))
        if unmeasured:
            yield f"Not measured here, its weight left to the others: {join_names(unmeasured)}."
        if self.seeds < _FEW_SEEDS:
            yield f"{self.seeds} seeds are few for a bootstrap: its intervals are too narrow below {_FEW_SEEDS}."


def scorecard(
    runs: pd.DataFrame,
    table: str = "ADR-056",
    perf_map: PerfMap | None = None,
    *,
    resamples: int = 2000,
    seed: int = 7,
) -> Scorecard:
    """Return a record's decision table with Perf as these runs measured it.

        card = scorecard(study.runs)
        scorecard(study.runs, perf_map=PerfMap(zeros=(0.0, 0.25, 1.0, 0.0), weights=(2, 1, 1, 1)))

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
    # Each seed drawn once, and seeds drawn with replacement.
    means = measures.means(np.ones((1, measures.seeds)))[0]
    even = np.full(measures.seeds, 1 / measures.seeds)
    draws = np.random.default_rng(seed).multinomial(measures.seeds, even, size=resamples).astype(np.float64)
    options = _Options(decided, measures.arms)
    winners = [decided.winners(options.scores(perf), options.names) for perf in (None, used.perf(means))]
    return Scorecard(
        table=decided,
        perf_map=used,
        totals=_totals(options, used.perf(means), used.perf(measures.means(draws))),
        components=_components(measures.arms, means, used),
        weight_map=pd.concat(
            [each.assign(perf=perf) for perf, each in zip(PERFS, winners, strict=True)], ignore_index=True
        ),
        maps=_maps(options, means, used),
        seeds=measures.seeds,
        context=" · ".join(conditions_in_words(runs)),
    )


@dataclass(frozen=True, eq=False)
class Measures:
    """The measurements of each arm, summed over each seed's runs, so that seeds can be resampled.

    arms: a row for each: arm, alternative, alternative_options, in the order of every figure. sums: seed × arm ×
    (answers in time, overrun in timeouts, late work in timeouts, source recall returned, source recall found by the
    deadline, runs).
    """

    arms: pd.DataFrame
    sums: Matrix

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.sums)

    def means(self, times_drawn: Matrix) -> Matrix:
        """Return the components of resampled seeds, draw × arm × component. times_drawn: draw × seed."""
        answered, overrun, late_work, kept, by_deadline, runs = np.einsum("ds,sac->cda", times_drawn, self.sums)
        control = (self.arms["alternative"] == CONTROL).to_numpy()
        components = [
            _share(answered, answered[:, control]),
            overrun / runs,
            late_work / runs,
            _share(kept, by_deadline[:, control]),
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
    frame = with_arms(runs).astype({"alternative": "str", "alternative_options": "str"})
    arms = frame.drop_duplicates("arm").sort_values("arm")[["arm", "alternative", "alternative_options"]]
    controls = int((arms["alternative"] == CONTROL).sum())
    if not controls:
        raise ConfigurationError(
            f"runs has no control: a scorecard sets every arm against what was possible; measure {CONTROL} with them"
        )
    _require_balance(frame)
    if controls > 1:
        raise ConfigurationError("the control was run in several ways: keep its runs with one of retries, node_mode")
    budget_s = frame["decision_timeout_s"]
    values = pd.DataFrame(
        {
            "answered": frame["answered_in_time"].astype("float64"),
            "overrun": frame["caller_overrun_s"].fillna(frame["horizon_s"] - budget_s) / budget_s,
            "late_work": frame["busy_after_deadline_s"] / budget_s,
            "kept": frame["source_recall"],
            "by_deadline": frame["recall_at_deadline"],
            "runs": 1.0,
        }
    )
    # A sum with a NaN in it is NaN: what is known of some runs only is not known of the arm.
    by_seed = values.groupby([frame["seed"], frame["arm"]], observed=True, sort=True).sum(skipna=False)
    sums = by_seed.to_numpy(dtype=np.float64).reshape(-1, len(arms), len(values.columns))
    return Measures(arms.astype({"arm": "str"}).reset_index(drop=True), sums)


def _require_balance(frame: pd.DataFrame) -> None:
    cells = frame.groupby([*CONDITION, "seed"], observed=True, sort=True).ngroup()
    met = pd.crosstab(cells, frame["arm"].astype("str"))
    if (met > 1).to_numpy().any():
        raise ConfigurationError("runs has a run of one arm, condition and seed twice: keep one of each")
    missing = (met == 0).sum()
    if missing.any():
        raise ConfigurationError(
            f"{one_line(str(missing.idxmax()))} has not met {missing.max()} of the {len(met)} seeds and "
            "conditions of the others: keep the runs that all arms have, or measure what is missing"
        )


class _Options:
    """The arms that are options of the record, without options of their own: places among the arms, and scores.

    Raises: ConfigurationError for one that was run in several ways, or fewer than two of them.
    """

    def __init__(self, table: DecisionTable, arms: pd.DataFrame) -> None:
        plain = arms[arms["alternative_options"] == "{}"]
        ways = {option.alternative: plain.index[plain["alternative"] == option.alternative] for option in table.options}
        for name, places in ways.items():
            if len(places) > 1:
                raise ConfigurationError(
                    f"{name} was run in several ways ({', '.join(arms.loc[places, 'arm'])}): keep the runs of one, "
                    "since the record scores it once"
                )
        self.places = [int(places[0]) for places in ways.values() if len(places)]
        if len(self.places) < 2:
            raise ConfigurationError(
                f"a decision needs two options of {table.name} or more among the arms: {', '.join(ways)}"
            )
        self.table, self.arms = table, arms
        self.names = tuple(arms["arm"].iloc[self.places])
        self._judged = table.matrix()[[row for row, places in enumerate(ways.values()) if len(places)]]

    def scores(self, perf: Matrix | None = None) -> Matrix:
        """Return the scores of the options as judged, or with this Perf of all arms (on the last axis)."""
        if perf is None:
            return self._judged
        scores = np.broadcast_to(self._judged, (*perf.shape[:-1], *self._judged.shape)).copy()
        scores[..., self.table.criteria.index(self.table.measurable)] = perf[..., self.places]
        return scores

    def totals(self, perf: Matrix | None = None) -> Matrix:
        """Return the totals of these scores at the weights of the record."""
        return self.scores(perf) @ self.table.weights


def _totals(options: _Options, perf: Matrix, drawn: Matrix) -> pd.DataFrame:
    """Return `Scorecard.totals`: the options in the order of every figure, then arms that the record lacks."""
    table, arms = options.table, options.arms
    judged, totals, of_draws = (options.totals(each) for each in (None, perf, drawn))
    first = leaders(of_draws)
    alone = first & (first.sum(axis=1, keepdims=True) == 1)
    others = " and ".join(name for name in table.criteria if name != table.measurable)
    frame = []
    for arm in sorted(range(len(arms)), key=lambda arm: arm not in options.places):
        row: dict[str, Any] = {"option": arms["arm"][arm], "alternative": arms["alternative"][arm]}
        row |= dict.fromkeys(table.criteria, np.nan) | _with_bounds("perf", float(perf[arm]), drawn[:, arm])
        row["note"] = f"no total: {table.name} does not score its {others}"
        if arm in options.places:
            place = options.places.index(arm)
            row |= dict(zip(table.criteria, options.scores()[place].tolist(), strict=True))
            row |= {"total_judged": float(judged[place]), "note": "", "first_share": float(alone[:, place].mean())}
            row |= _with_bounds("total", float(totals[place]), of_draws[:, place])
        frame.append(row)
    return pd.DataFrame(frame)


def _maps(options: _Options, means: Matrix, perf_map: PerfMap) -> pd.DataFrame:
    """Return `Scorecard.maps`: all zeros combined with component weights in steps of a fifth."""
    shares = weights_in_steps(len(COMPONENTS), _COMPONENT_STEP_PERCENT) / 100
    # All of the weight on what was not measured says nothing of anybody; what was measured is the same in every map.
    shares = shares[~np.isnan(perf_map.perf(means[None, :, :], shares[:, None, :])).any(axis=1)]
    zeros = list(itertools.product(_SHARES, _TIMEOUTS, _TIMEOUTS, _SHARES))
    winners = []
    for each in zeros:
        perf = dataclasses.replace(perf_map, zeros=each).perf(means[None, :, :], shares[:, None, :])
        winners.append(winner_of(options.totals(perf)))
    values = np.concatenate([np.repeat(np.array(zeros), len(shares), axis=0), np.tile(shares, (len(zeros), 1))], axis=1)
    frame = pd.DataFrame(values, columns=[f"{name}_{what}" for what in ("zero", "weight") for name in COMPONENTS])
    return frame.assign(winner=np.array([*options.names, ""])[np.concatenate(winners)])


def _with_bounds(name: str, value: float, drawn: Matrix) -> dict[str, float]:
    low, high = (np.nan, np.nan) if np.isnan(drawn).all() else np.nanpercentile(drawn, [2.5, 97.5])
    return {f"{name}_measured": value, f"{name}_low": float(low), f"{name}_high": float(high)}


def _components(arms: pd.DataFrame, means: Matrix, perf_map: PerfMap) -> pd.DataFrame:
    scores = perf_map.score(means)
    weights = np.where(np.isnan(scores), 0.0, perf_map.shares)
    # A caller overrun is always measured, but a map may give it no weight.
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    each = (
        arms[["arm", "alternative"]]
        .rename(columns={"arm": "option"})
        .merge(pd.DataFrame({"component": list(COMPONENTS)}), how="cross")
    )
    return each.assign(measured=means.ravel(), score=scores.ravel(), weight=weights.ravel())


def _share(part: Matrix, whole: Matrix) -> Matrix:
    nothing: Any = np.full(np.broadcast(part, whole).shape, np.nan)
    return np.asarray(np.divide(part, whole, out=nothing, where=whole > 0))


def _share_text(share: float) -> str:
    """Return a share in percent that is rounded to 0 or 100 only if it is exactly that."""
    if 0 < share < 0.0005:
        return "less than 0.1%"
    return "more than 99.9%" if 0.9995 <= share < 1 else percent(share, 1 if 0 < share < 1 else 0)


def _intervals(totals: pd.DataFrame, name: str, digits: int) -> list[str]:
    columns = (totals[f"{name}_measured"], totals[f"{name}_low"], totals[f"{name}_high"])
    return [with_interval(*row, digits) for row in zip(*columns, strict=True)]
