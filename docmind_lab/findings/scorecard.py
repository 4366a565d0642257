"""The scorecard: a decision record's table with Perf measured instead of judged.

    card = scorecard(study.runs)
    card.totals                 # one row per option of the record, then the arms it does not know
    card.components             # what Perf is made of: measured, score

ADR-056 does not say what its Perf means. Here it is the mean of four components, in the order of what a deadline is
for: answers that came in time, of those that could have; how long the caller waited beyond the deadline; what the
servers did for nobody afterwards; what the caller was left with. This is one reading of it, so the scorecard also says
who would lead by each component alone. The other columns are those of the record: nobody has measured complexity or
alignment here, and nobody invents them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import join_names, number, one_line, with_interval
from docmind_lab.findings.decision_tables import DecisionTable, Matrix, decision_table, winner_of
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.tables.conditions import CONDITION, CONTROL, conditions_in_words, with_arms


@dataclass(frozen=True)
class Component:
    """A part of Perf. Its score goes in a straight line from 0 at `zero` to 10 at `best`, and stops at both."""

    words: str
    zero: float
    best: float


COMPONENTS = MappingProxyType(
    {
        "answered": Component("answers in time, as a share of those that the control had in time", 0.0, 1.0),
        "overrun": Component(
            "mean caller overrun, in decision timeouts (no answer by the horizon counts with the horizon)", 1.0, 0.0
        ),
        "late_work": Component("mean server-seconds spent after the deadline, in decision timeouts", 1.0, 0.0),
        "kept": Component(
            "source recall returned, late or not, as a share of what the control had found by the deadline", 0.0, 1.0
        ),
    }
)
"""What is measured of an arm, in the order of every array here. Each is NaN for all arms where nothing can be said."""

PERFS: Final = ("judged", "measured")
_RESAMPLES, _SEED = 2000, 7
# Below this many seeds a percentile bootstrap interval is known to be too narrow (Efron and Tibshirani, An
# Introduction to the Bootstrap, 1993, chapter 13: it inherits the plug-in variance, short by 1/n).
_FEW_SEEDS: Final = 20


@dataclass(frozen=True, eq=False, repr=False)
class Scorecard(MakesFinding):
    """A decision table with measured Perf. Options are called as in every figure ("A  cooperative"); scores and totals
    go from 0 to 10. Intervals are 95 % percentile bootstrap intervals over seeds, the same seeds drawn for every arm.

    totals: one row per arm: option, alternative, a column for each criterion as judged (NaN: the record has none),
    perf_measured, perf_low, perf_high, total_judged, total_measured, total_low, total_high.
    components: one row per arm and component: option, alternative, component, measured, score (NaN: not measured).
    by_component: component that was measured → the option that leads with that one as Perf; "" for a tie.
    table: the record's. seeds: how many questions were asked under each arm. context: the conditions, in words.
    """

    table: DecisionTable
    totals: pd.DataFrame
    components: pd.DataFrame
    by_component: Mapping[str, str]
    seeds: int
    context: str

    @property
    def scored(self) -> pd.DataFrame:
        """The rows of `totals` that are options of the record."""
        return self.totals[self.totals["total_judged"].notna()]

    @property
    def decision(self) -> dict[str, str]:
        """The option that leads at the weights of the table, for each Perf (judged, measured); "" for a tie."""
        names = [*self.scored["option"], ""]
        return {perf: names[int(winner_of(self.scored[f"total_{perf}"].to_numpy()))] for perf in PERFS}

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings, one sentence each."""
        return (*self._totals_words(), *self._components_words(), *self._limits())

    def display_table(self) -> pd.DataFrame:
        """Return the totals, rounded, with "judged" and "measured" in the headings."""
        totals = self.totals
        columns = {f"{name} (judged)": [number(v, 1) for v in totals[name]] for name in self.table.criteria}
        columns[f"{self.table.measurable} (measured)"] = _intervals(totals, "perf", 1)
        columns["total (judged)"] = [number(v, 2) for v in totals["total_judged"]]
        columns["total (measured)"] = _intervals(totals, "total", 2)
        return pd.DataFrame(columns, index=pd.Index(totals["option"], name=None))

    def finding(self) -> Finding:
        """Return the table, what Perf is made of, and the findings."""
        title = f"{self.table.name} with measured Perf · {self.context} · {self.seeds} seeds"
        made_of = f"Perf: the mean of {len(COMPONENTS)} components, each in a straight line from 0 to 10"
        parts = tuple(
            f"{name}: {each.words}; {each.zero:g} → 0, {each.best:g} → 10" for name, each in COMPONENTS.items()
        )
        words = (title, self.display_table(), made_of, parts, self.sentences)
        numbers = {"decision": self.decision, "by_component": dict(self.by_component), "seeds": self.seeds}
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
        yield (f"With measured {measurable} {measured} leads, {was}, with {total} of 10 (95 % bootstrap interval).")

    def _components_words(self) -> Iterator[str]:
        """Yield who leads by each component of Perf alone."""
        leaders_of: dict[str, list[str]] = {}
        for component, option in self.by_component.items():
            leaders_of.setdefault(one_line(option) or "none alone", []).append(component)
        each = "; ".join(f"{option} by {join_names(components)}" for option, components in leaders_of.items())
        yield f"With one component alone as {self.table.measurable}, the leader is {each}."

    def _limits(self) -> Iterator[str]:
        unknown = self.totals[self.totals["total_judged"].isna()]
        if len(unknown):
            names = join_names([one_line(name) for name in unknown["option"]])
            others = " and ".join(name for name in self.table.criteria if name != self.table.measurable)
            yield (
                f"{names}: measured {self.table.measurable} and no total: {self.table.name} does not score its "
                f"{others}."
            )
        control = self.totals[self.totals["alternative"] == CONTROL].iloc[0]
        yield (
            f"The control, which enforces nothing, has {number(control['perf_measured'], 1)} here: read every other "
            f"{self.table.measurable} against that."
        )
        unmeasured = [name for name in COMPONENTS if name not in self.by_component]
        if unmeasured:
            yield f"Not measured here, its weight left to the others: {join_names(unmeasured)}."
        if self.seeds < _FEW_SEEDS:
            yield f"{self.seeds} seeds are few for a bootstrap: its intervals are too narrow below {_FEW_SEEDS}."


def scorecard(runs: pd.DataFrame) -> Scorecard:
    """Return ADR-056's decision table with Perf as these runs measured it.

    Args:
        runs: The `runs` table of a study, the control among its arms; several conditions count alike, since overruns
            and late work are in decision timeouts.

    Raises:
        ConfigurationError: The runs cannot be compared, fewer than two options of the record were run, or one in
            several ways.
    """
    table = decision_table()
    frame = with_arms(runs).astype({"alternative": "str", "alternative_options": "str"})
    arms = frame.drop_duplicates("arm").sort_values("arm")[["arm", "alternative", "alternative_options"]]
    arms = arms.astype({"arm": "str"}).rename(columns={"arm": "option"}).reset_index(drop=True)
    sums = _sums(frame, arms)
    places, judged = _options(table, arms)
    seeds, control = len(sums), (arms["alternative"] == CONTROL).to_numpy()
    # Each seed drawn once, and seeds drawn with replacement.
    measured = _means_of(sums, np.ones((1, seeds)), control)[0]
    draws = np.random.default_rng(_SEED).multinomial(seeds, np.full(seeds, 1 / seeds), _RESAMPLES).astype(np.float64)
    scores, drawn_scores = _scores_of(measured), _scores_of(_means_of(sums, draws, control))

    def options_with(perf: Matrix) -> Matrix:
        """Return the scores of the options, with this Perf of all arms."""
        known = judged.copy()
        known[:, table.criteria.index(table.measurable)] = perf[places]
        return known

    # A caller's overrun is always known, so there is always a mean.
    perf, drawn = (np.nanmean(each, axis=-1) for each in (scores, drawn_scores))
    bounds = {"measured": perf, **dict(zip(("low", "high"), np.percentile(drawn, [2.5, 97.5], axis=0), strict=True))}
    totals = arms.assign(**{f"perf_{name}": each for name, each in bounds.items()})
    # A total rises with its Perf, so its bounds are those with the bounds of Perf.
    of_options = {f"total_{name}": options_with(each) @ table.weights for name, each in bounds.items()}
    known = [judged, judged @ table.weights, *of_options.values()]
    totals.loc[places, [*table.criteria, "total_judged", *of_options]] = np.column_stack(known)
    names = tuple(arms["option"].iloc[places])
    alone = {name: scores[:, place] for place, name in enumerate(COMPONENTS) if not np.isnan(scores[:, place]).any()}
    leads = {name: winner_of(options_with(each) @ table.weights) for name, each in alone.items()}
    each_component = arms[["option", "alternative"]].merge(pd.DataFrame({"component": list(COMPONENTS)}), how="cross")
    return Scorecard(
        table=table,
        totals=totals.sort_values("total_judged", key=pd.isna, kind="stable", ignore_index=True),
        components=each_component.assign(measured=measured.ravel(), score=scores.ravel()),
        by_component={name: (*names, "")[int(place)] for name, place in leads.items()},
        seeds=seeds,
        context=" · ".join(conditions_in_words(runs)),
    )


def _options(table: DecisionTable, arms: pd.DataFrame) -> tuple[list[int], Matrix]:
    """Return the places of the record's options among the arms, and their scores as judged.

    Raises: ConfigurationError for an option that was run in several ways, or fewer than two of them.
    """
    plain = arms[arms["alternative_options"] == "{}"]
    ways = {option.alternative: plain.index[plain["alternative"] == option.alternative] for option in table.options}
    for name, places in ways.items():
        if len(places) > 1:
            raise ConfigurationError(
                f"{name} was run in several ways ({', '.join(arms.loc[places, 'option'])}): keep the runs of one, "
                "since the record scores it once"
            )
    if sum(map(len, ways.values())) < 2:
        raise ConfigurationError(
            f"a decision needs two options of {table.name} or more among the arms: {', '.join(ways)}"
        )
    rows = [row for row, places in enumerate(ways.values()) if len(places)]
    return [int(places[0]) for places in ways.values() if len(places)], table.matrix()[rows]


def _sums(frame: pd.DataFrame, arms: pd.DataFrame) -> Matrix:
    """Return the measurements of each seed and arm, summed over its conditions, so that seeds can be resampled.

    Seed × arm × (answers in time, overrun in timeouts, late work in timeouts, source recall returned, source recall
    found by the deadline, runs).

    Raises: ConfigurationError when there is no control or several, when an arm has not met the seeds and conditions of
    the others (a mean over other questions is no comparison), or when a run is there twice.
    """
    controls = int((arms["alternative"] == CONTROL).sum())
    if not controls:
        raise ConfigurationError(
            f"runs has no control: a scorecard sets every arm against what was possible; measure {CONTROL} with them"
        )
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
    return by_seed.to_numpy(dtype=np.float64).reshape(-1, len(arms), len(values.columns))


def _means_of(sums: Matrix, times_drawn: Matrix, control: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Matrix:
    """Return the components of resampled seeds, draw × arm × component.

    Args:
        sums: Seed × arm × measurement.
        times_drawn: Draw × seed.
        control: Whether each arm is the control.
    """
    answered, overrun, late_work, kept, by_deadline, runs = np.einsum("ds,sac->cda", times_drawn, sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [part / whole[:, control] for part, whole in ((answered, answered), (kept, by_deadline))]
    means = np.stack([shares[0], overrun / runs, late_work / runs, shares[1]], axis=-1)
    # What is known of some arms only, or a share of nothing, is no basis to compare arms on.
    return np.where(np.isfinite(means).all(axis=-2, keepdims=True), means, np.nan)


def _scores_of(means: Matrix) -> Matrix:
    """Return the score of each component, 0 to 10, NaN if not measured. means: components on the last axis."""
    zero, best = (np.array([getattr(each, end) for each in COMPONENTS.values()]) for end in ("zero", "best"))
    return np.asarray(10.0 * np.clip((means - zero) / (best - zero), 0.0, 1.0))


def _intervals(totals: pd.DataFrame, name: str, digits: int) -> list[str]:
    columns = (totals[f"{name}_measured"], totals[f"{name}_low"], totals[f"{name}_high"])
    return [with_interval(*row, digits) for row in zip(*columns, strict=True)]
