"""Regret: how much better the answers could have been for somebody who had known all latencies.

    best = Clairvoyant.of(probe)                   # runs in which every call was hedged at once
    ranking = rank_policies(study, best)           # of each arm: its score, its regret, what it cost
    ranking.table

The clairvoyant knows how long both requests of every call take, and when to stop looking and answer. A run in which
every model call is made twice at once has the shorter of the two latencies in each call, so its instants are the
earliest there are for two requests a call, as long as a latency does not depend on when its call begins. Where it does,
as in a brownout, another run may be earlier: the clairvoyant may do what any run of the study did. Stopping after a
part of the sources, it still has to make the calls that follow the last of them; its answer is taken to have that part
of the score.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.conditions import CONDITION, in_words, varying, with_arms
from docmind_lab.analysis.statistics.differences import paired_mean_difference
from docmind_lab.analysis.statistics.interval import Interval
from docmind_lab.analysis.tables.frames import StudyTables
from docmind_lab.core.catalogue import POLICIES, label_of
from docmind_lab.core.errors import ConfigurationError

PROBE_POLICY: Final = "hedge:0.001s"
"""The policy of the runs that a clairvoyant is made of: every call is made twice at once."""

# The bootstrap of fewer pairs says nothing.
_FEWEST_PAIRS: Final = 5

_MET: Final = ("workload", "latency_profile", "fault", "seed", "question_id")
"""Columns of `runs` that say what a run met, whoever enforced its deadline."""


@dataclass(frozen=True)
class BestResults:
    """The best scores that one run could have had, by deadline.

    Args:
        at_s: Deadlines from which on a better score can be had, ascending, seconds from the run's start.
        score: The best score from each of them on, ascending.
    """

    at_s: tuple[float, ...] = ()
    score: tuple[float, ...] = ()

    def or_else(self, other: BestResults) -> BestResults:
        """Return the better of two at every deadline."""
        return _ascending([*zip(self.at_s, self.score, strict=True), *zip(other.at_s, other.score, strict=True)])

    def by(self, deadline_s: float) -> float:
        """Return the best score that can be had by a deadline. deadline_s: seconds from the run's start."""
        points = zip(self.at_s, self.score, strict=True)
        return max((score for at_s, score in points if at_s <= deadline_s), default=0.0)

    def mean_until(self, deadline_s: float) -> float:
        """Return the mean of `by` over all instants until a deadline."""
        ends_s = [min(at_s, deadline_s) for at_s in (*self.at_s, deadline_s)]
        return sum(score * (ends_s[n + 1] - ends_s[n]) for n, score in enumerate(self.score)) / deadline_s


def best_results(scored: Iterable[tuple[float, float, float]]) -> BestResults:
    """Return the best results of a run whose calls were all as quick as they can be.

    Args:
        scored: When what there was to return changed: seconds from the run's start, recall, score; ascending.
    """
    marks = list(scored)
    most = max((score for _, _, score in marks), default=0.0)
    if not most:
        return BestResults()
    answered_at_s = next(at_s for at_s, _, score in marks if score == most)
    looking = [(at_s, recall) for at_s, recall, _ in marks if at_s <= answered_at_s]
    fullest = max(recall for _, recall in looking)
    points = [(at_s, score) for at_s, _, score in marks if score > 0]
    if fullest:
        last_at_s = next(at_s for at_s, recall in looking if recall == fullest)
        answering_s = answered_at_s - last_at_s
        points += [(at_s + answering_s, most * recall / fullest) for at_s, recall in looking if recall > 0]
    return _ascending(points)


def _ascending(points: Iterable[tuple[float, float]]) -> BestResults:
    """Return the best results by deadline from instants with the score that can be had at each."""
    kept: list[tuple[float, float]] = []
    for at_s, score in sorted(points, key=lambda point: (point[0], -point[1])):
        if not kept or score > kept[-1][1]:
            kept.append((at_s, score))
    return BestResults(tuple(at_s for at_s, _ in kept), tuple(score for _, score in kept))


@dataclass(frozen=True)
class Clairvoyant:
    """The best results of runs, by what they met: workload, latencies, fault, seed and question."""

    best: Mapping[tuple[Any, ...], BestResults] = field(repr=False)

    @classmethod
    def of(cls, probe: StudyTables) -> Clairvoyant:
        """Return the clairvoyant over the runs of a study in which every call was hedged at once.

        Args:
            probe: Its runs all have the policy `PROBE_POLICY`, and time enough to end.

        Raises:
            ConfigurationError: A run has another policy, or did not end by itself.
        """
        runs = probe.runs
        for options in runs["alternative_options"].unique():
            if json.loads(options).get(POLICIES) != PROBE_POLICY:
                raise ConfigurationError(
                    f"the probe has runs without policies={PROBE_POLICY}: measure A+{PROBE_POLICY}"
                )
        cut = runs[~runs["outcome"].isin(["answered", "failed"])]
        if len(cut):
            raise ConfigurationError(
                f"{len(cut)} of {len(runs)} runs of the probe were cut: give it a longer decision timeout"
            )
        marks = _marks_of(probe)
        return cls({key: best_results(marks.get(run_id, [])) for key, run_id in _keys_of(runs)})

    def or_any(self, study: StudyTables) -> Clairvoyant:
        """Return a clairvoyant who may also do what any run of a study did.

        Args:
            study: The runs. What the probe has not met is left out.
        """
        best = dict(self.best)
        marks = _marks_of(study)
        for key, run_id in _keys_of(study.runs):
            if key in best:
                best[key] = best[key].or_else(best_results(marks.get(run_id, [])))
        return Clairvoyant(best)

    def __repr__(self) -> str:
        able = sum(bool(each.score) for each in self.best.values())
        return f"Clairvoyant: {len(self.best)} runs, of which {able} can have an answer with a score"

    def of_what_was_met(self, key: tuple[Any, ...]) -> BestResults:
        """Return the best results of what a run met. Raises: ConfigurationError if the probe did not meet it."""
        if key not in self.best:
            met = ", ".join(f"{name}={value}" for name, value in zip(_MET, key, strict=True))
            raise ConfigurationError(f"the probe has no run with {met}: give it the seeds and conditions of the study")
        return self.best[key]


def _marks_of(study: StudyTables) -> dict[str, list[tuple[float, float, float]]]:
    """Return when what there was to return changed, in each run: instant, recall, score; ascending."""
    events = study.events[study.events["event"].astype("str") == "result_scored"]
    marks: dict[str, list[tuple[float, float, float]]] = {}
    for event in events.to_dict("records"):
        detail = json.loads(event["detail"])
        mark = float(event["at_s"]), float(detail.get("recall", 0.0)), float(detail.get("score", 0.0))
        marks.setdefault(str(event["run_id"]), []).append(mark)
    return {run_id: sorted(found) for run_id, found in marks.items()}


def _keys_of(runs: pd.DataFrame) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield what each run met, with its id."""
    plain = runs.astype(dict.fromkeys(("workload", "latency_profile", "fault", "question_id"), "str"))
    yield from zip(plain[list(_MET)].itertuples(index=False, name=None), plain["run_id"].astype("str"), strict=True)


@dataclass(frozen=True, eq=False)
class PolicyRanking:
    """Policies by regret, condition by condition.

    Args:
        runs: One row per run or query, with `best_score`, `regret`, `area_regret`, `tokens` and `server_s` beside its
            columns.
        table: One row per condition and arm, the least regret first in each condition. `difference` is the score less
            that of the same alternative without a policy, seed by seed or crowd by crowd; `more_in_time` is the same
            for the share answered in time.
    """

    runs: pd.DataFrame = field(repr=False)
    table: pd.DataFrame = field(repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table with intervals as [low, high], for JSON and CSV."""
        bounds = ("regret_interval", "difference", "more_in_time")
        found = []
        for row in self.table.to_dict("records"):
            plain = {str(name): value for name, value in row.items() if name not in bounds}
            for name in bounds:
                interval: Interval | None = row[name]
                plain |= {f"{name}_low": math.nan, f"{name}_high": math.nan}
                if interval is not None:
                    plain |= {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
            found.append(plain)
        return found

    def sections(self) -> list[tuple[str, list[str]]]:
        """Return a title for each condition, and its lines: the policies, the least regret first."""
        is_load = "offered_per_s" in self.table
        several = list(_LOAD) if is_load else varying(self.table)
        groups = self.table.groupby(several, sort=False, observed=True) if several else [((), self.table)]
        found = []
        for values, group in groups:
            shared = dict(zip(several, values, strict=True))
            if is_load:
                title = f"{group['offered_per_s'].iloc[0]:.3g} queries a second"
            else:
                title = in_words(shared, several) or f"{group['runs'].iloc[0]} runs each"
            found.append((title, [_HEADINGS, *(_line(row) for row in group.to_dict("records"))]))
        return found

    def __repr__(self) -> str:
        return "\n".join("\n".join((title, *lines)) for title, lines in self.sections())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


_NAME: Final = 22
_HEADINGS: Final = f"{'policies':{_NAME}} {'in time':>7} {'regret':>18} {'tokens':>7} {'score gained':>20}"
_VALUES: Final = (
    "answered_in_time",
    "answer_score",
    "mean_score",
    "best_score",
    "regret",
    "area_regret",
    "tokens",
    "server_s",
)
_LOAD: Final = ("offered_per_s",)


def rank_policies(study: StudyTables, best: Clairvoyant, confidence: float = 0.95) -> PolicyRanking:
    """Rank the arms of a study by their regret.

    Args:
        study: Runs with and without policies. Those with one seed met the same latencies.
        best: What a clairvoyant would have made of what they met.
        confidence: Of the intervals.

    Returns:
        The regret at the deadline (best score less the run's), the area regret (the same over all instants until the
        deadline), tokens and seconds of the model server for each run, and the paired difference of the score to the
        same alternative without a policy, with its interval.

    Raises:
        ConfigurationError: The study has no gold answers, or runs that the probe did not meet.
    """
    runs = with_arms(study.runs)
    _require_gold(runs)
    known = best.or_any(study)
    bests = [known.of_what_was_met(key) for key, _ in _keys_of(runs)]
    until_s = runs["decision_timeout_s"].tolist()
    runs = runs.assign(
        best_score=[each.by(at_s) for each, at_s in zip(bests, until_s, strict=True)],
        best_mean_score=[each.mean_until(at_s) for each, at_s in zip(bests, until_s, strict=True)],
        **_paid(study),
    )
    return _ranking(runs, CONDITION, "seed", confidence)


def rank_under_load(
    queries: pd.DataFrame, servings: pd.DataFrame, probe: pd.DataFrame, confidence: float = 0.95
) -> PolicyRanking:
    """Rank the arms of a load study by their regret.

    The best score of a query is what it comes to alone at a server without a limit of slots, with every call hedged at
    once, or under any arm of the study. Queries of one crowd share their luck, so intervals are over means of crowds.

    Args:
        queries: Of the load study.
        servings: Of the load study.
        probe: The queries of the probe, with the same decision timeout.
        confidence: Of the intervals.

    Raises:
        ConfigurationError: There are no gold answers, or queries that the probe did not meet.
    """
    counted = queries[queries["scheduled_at_s"].between(queries["window_from_s"], queries["window_until_s"])]
    runs = with_arms(counted)
    _require_gold(runs)
    known = probe.set_index("seed")[["answer_score", "mean_score"]]
    missing = set(runs["seed"]) - set(known.index)
    if missing:
        raise ConfigurationError(f"the probe has no query with seed {min(missing)}: give it the design of the study")
    asked = servings.assign(
        server_s=servings["left_at_s"] - servings["served_from_s"], tokens=servings["tokens"].fillna(0.0)
    )
    paid = asked.groupby("run_id")[["server_s", "tokens"]].sum()
    reached = runs.groupby(["offered_per_s", "seed"])[["answer_score", "mean_score"]].transform("max")
    runs = runs.assign(
        best_score=np.maximum(runs["seed"].map(known["answer_score"]), reached["answer_score"]),
        best_mean_score=np.maximum(runs["seed"].map(known["mean_score"]), reached["mean_score"]),
        **{name: runs["run_id"].map(paid[name]).fillna(0.0) for name in ("server_s", "tokens")},
    )
    return _ranking(runs, _LOAD, "replicate", confidence)


def _require_gold(runs: pd.DataFrame) -> None:
    if runs["answer_score"].isna().any():
        raise ConfigurationError("regret needs questions with gold answers: answer_score is not known for some runs")


def _ranking(runs: pd.DataFrame, condition: Sequence[str], unit: str, confidence: float) -> PolicyRanking:
    """Return the ranking. unit: column of what is independent, a seed or a crowd."""
    runs = runs.assign(
        regret=runs["best_score"] - runs["answer_score"], area_regret=runs["best_mean_score"] - runs["mean_score"]
    )
    rows = []
    for values, group in runs.groupby(list(condition), observed=True, sort=True):
        shared = dict(zip(condition, values, strict=True))
        rows += [shared | row for row in _of_condition(group, unit, confidence)]
    return PolicyRanking(runs, pd.DataFrame(rows))


def _paid(study: StudyTables) -> dict[str, pd.Series[float]]:
    """Return what the model server did for each run, whoever still listened: its tokens and its seconds."""
    calls = study.calls
    served = calls[(calls["seen_from"].astype("str") == "server") & (calls["kind"].astype("str") == "llm")]
    horizon_s = served["run_id"].map(study.runs.set_index("run_id")["horizon_s"])
    seconds = served["ended_at_s"].fillna(horizon_s) - served["started_at_s"] - served["queue_wait_s"].fillna(0.0)
    tokens = served["input_tokens"].fillna(0.0) + served["output_tokens"].fillna(0.0)
    run = study.runs["run_id"]
    return {
        "tokens": run.map(tokens.groupby(served["run_id"]).sum()).fillna(0.0),
        "server_s": run.map(seconds.groupby(served["run_id"]).sum()).fillna(0.0),
    }


def _of_condition(runs: pd.DataFrame, unit: str, confidence: float) -> list[dict[str, Any]]:
    means = {str(arm): group.groupby(unit)[list(_VALUES)].mean() for arm, group in runs.groupby("arm", observed=True)}
    rows = []
    for arm, group in runs.groupby("arm", observed=True):
        first, mine = group.iloc[0], means[str(arm)]
        options = json.loads(str(first["alternative_options"]))
        policies = options.pop(POLICIES, "none")
        plain = means.get(label_of(str(first["alternative"]), json.dumps(options, sort_keys=True)))
        gained, in_time, more = None, None, math.nan
        if policies != "none" and plain is not None:
            both = mine.index.intersection(plain.index)
            gained = _difference(mine["answer_score"][both], plain["answer_score"][both], confidence)
            in_time = _difference(mine["answered_in_time"][both], plain["answered_in_time"][both], confidence)
            more = float((mine["tokens"][both] - plain["tokens"][both]).mean())
        rows.append(
            {
                "arm": str(arm),
                "policies": policies,
                "runs": len(group),
                "score": float(mine["answer_score"].mean()),
                "answered_in_time": float(mine["answered_in_time"].mean()),
                "more_in_time": in_time,
                "regret": float(mine["regret"].mean()),
                "regret_interval": _above_zero(_difference(mine["best_score"], mine["answer_score"], confidence)),
                "area_regret": float(mine["area_regret"].mean()),
                "tokens": float(mine["tokens"].mean()),
                "server_s": float(mine["server_s"].mean()),
                "difference": gained,
                "more_tokens": more,
                "tokens_for_a_point": _for_a_point(more, gained),
            }
        )
    return sorted(rows, key=lambda row: (row["regret"], row["tokens"]))


def _difference(first: pd.Series[float], second: pd.Series[float], confidence: float) -> Interval | None:
    if len(first) < _FEWEST_PAIRS:
        return None
    interval = paired_mean_difference(first.to_numpy(), second.to_numpy(), confidence).interval
    # Scores are shares, so no difference of two is beyond 1; the bootstrap of few crowds does not know.
    return replace(interval, low=max(-1.0, interval.low), high=min(1.0, interval.high))


def _above_zero(interval: Interval | None) -> Interval | None:
    """Return the interval of what cannot be negative."""
    return None if interval is None else replace(interval, low=max(0.0, interval.low))


def _for_a_point(more: float, gained: Interval | None) -> float:
    """Return the extra tokens for each hundredth of score; NaN where the score is not shown to be better."""
    return more / (100 * gained.estimate) if gained is not None and gained.low > 0 else math.nan


def _line(row: Mapping[Any, Any]) -> str:
    """Return a row of at most 80 columns; a long name has a line of its own."""
    interval, gained = row["regret_interval"], row["difference"]
    regret = f"{row['regret']:.2f}" if interval is None else _short(interval)
    name = str(row["policies"])
    start = f"{name:{_NAME}}" if len(name) <= _NAME else f"{name}\n{'':{_NAME}}"
    more = "" if gained is None else _short(gained)
    return f"{start} {row['answered_in_time']:>7.0%} {regret:>18} {row['tokens']:>7,.0f} {more:>20}".rstrip()


def _short(interval: Interval) -> str:
    """Return an estimate with its bounds in two digits, without a minus before zero."""
    values = [round(value, 2) + 0.0 for value in (interval.estimate, interval.low, interval.high)]
    return "{:.2f} [{:.2f}, {:.2f}]".format(*values)
