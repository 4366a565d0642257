"""Whether production behaves as a study said, by intervals of both.

    found = watch(Study.load("my-study"), read_enforced_calls(["traces.jsonl"]))
    found                # what the calls show, and a table
    found.frame          # each alternative, limit and measure: study, production, verdict

A measure is as the study said where the interval of its difference shows that it is not worse by more than a margin
that matters. It is worse where the interval shows any difference for the worse. Else the calls cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from docmind_lab.core.catalogue import CATALOGUE, label_of, letter_of, options_of, order_of
from docmind_lab.core.deadlines import HELD_WITHIN_S
from docmind_lab.core.errors import CallerLeft, ConfigurationError
from docmind_lab.core.levels import TIMEOUT_REASONS
from docmind_lab.core.text import count_of, join_names, level, one_line, percent
from docmind_lab.findings.finding import Block, Finding, MakesFinding
from docmind_lab.findings.study import Study
from docmind_lab.statistics.differences import column_values
from docmind_lab.statistics.interval import Floats, Interval, difference_of
from docmind_lab.statistics.sample_size import TooFewRuns, gated_quantile
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import condition_columns
from docmind_lab.tables.manifest import chosen_by

LIMIT_WITHIN: Final = 0.02
"""The part of a limit by which a call's may differ: what a hop takes off the time that it was given."""

Verdict = Literal["as the study said", "better", "worse", "cannot tell"]


@dataclass(frozen=True)
class Measure:
    """A number by which production is set beside a study.

    quantile: the quantile of the column; None for the share in which it is true. worse: 1 if more is worse, −1 if less
    is. margin: a difference up to this one does not matter, in the measure's unit; as in a choice between alternatives.
    """

    column: str
    words: str
    quantile: float | None
    worse: Literal[1, -1]
    margin: float

    def interval(self, values: Floats) -> Interval | TooFewRuns:
        """Return the measure with its interval, or how many values are missing for it."""
        if self.quantile is None:
            return share_interval(int(values.sum()), len(values), CONFIDENCE)
        return gated_quantile(values, self.quantile, CONFIDENCE)

    def text(self, value: Interval | TooFewRuns) -> str:
        """Format the measure with its interval: "93% [89%, 96%]", or what is missing for it."""
        if isinstance(value, TooFewRuns):
            return value.text()
        return _share_text(value) if self.quantile is None else value.text(3, "s")


_SHARE_MARGIN: Final = 0.05
MEASURES: Final = (
    Measure("answered_in_time", "answered by the deadline", None, -1, _SHARE_MARGIN),
    Measure("was_cut", "cut by the deadline", None, 1, _SHARE_MARGIN),
    Measure("caller_overrun_s", "median overrun", 0.5, 1, HELD_WITHIN_S),
    Measure("caller_overrun_s", "p95 overrun", 0.95, 1, HELD_WITHIN_S),
)
"""The measures that production is held to; all of a group have one level of significance together."""

_GROUP_CONFIDENCE: Final = 0.95
CONFIDENCE: Final = 1.0 - 2.0 * (1.0 - _GROUP_CONFIDENCE) / len(MEASURES)
"""Confidence of each interval: one in twenty groups that are as the study said is called worse, at most."""

_GROUP: Final = ["alternative", "limit_s"]
_COLUMNS: Final = [
    *(*_GROUP, "runs", "calls", "measure", "study", "production", "worse_by", "low", "high", "verdict"),
]


@dataclass(frozen=True, eq=False, repr=False)
class Watch(MakesFinding):
    """Whether production behaves as a study said.

    frame: one row for each alternative, limit and measure. Columns: alternative, limit_s, runs, calls (how many were
    compared), measure, study, production (intervals as text), worse_by, low, high (the difference in the measure's
    unit; NaN with too few runs or calls), verdict.
    notes: what was cut, and which calls were not counted, in words, by alternative and limit. not_compared: what could
    not be compared, why, and what to do. calls: how many enforced calls there are.
    """

    frame: pd.DataFrame
    notes: dict[tuple[str, float], list[str]]
    not_compared: tuple[str, ...]
    study_id: str
    workflow: str
    calls: int
    is_virtual: bool

    @property
    def verdicts(self) -> dict[tuple[str, float], Verdict]:
        """The verdict by alternative and limit: worse in any measure, else unsettled in any, else better in any."""
        order: tuple[Verdict, ...] = ("worse", "cannot tell", "better", "as the study said")
        groups: Iterable[Any] = self.frame.groupby(_GROUP, sort=False)["verdict"]
        return {
            (str(name), float(limit_s)): next(verdict for verdict in order if verdict in set(verdicts))
            for (name, limit_s), verdicts in groups
        }

    @property
    def is_worse(self) -> bool:
        """Whether any group is worse than the study said."""
        return bool((self.frame["verdict"] == "worse").any())

    @property
    def sentences(self) -> list[str]:
        """What the calls show, in words."""
        workflow = f" of {self.workflow}" if self.workflow else ""
        lines = [f"{count_of(self.calls, 'enforced call')}{workflow} beside study {self.study_id}."]
        for key, verdict in self.verdicts.items():
            lines += [self._words(key, verdict), *self.notes[key]]
        lines += [f"Not compared: {words}" for words in self.not_compared]
        if self.notes:
            lines.append(
                f"A difference up to {percent(_SHARE_MARGIN)} of calls or {HELD_WITHIN_S:g} s counts as none. Each "
                f"interval has {percent(CONFIDENCE, 1)}; production that is as the study said is called worse in "
                f"{percent(1 - _GROUP_CONFIDENCE)} of cases at most."
            )
        if self.notes and self.is_virtual:
            lines.append("The study ran in virtual time, so its overruns have no delays of a machine.")
        return lines

    def _words(self, key: tuple[str, float], verdict: Verdict) -> str:
        rows = self.frame[(self.frame[_GROUP] == list(key)).all(axis=1)]
        by_verdict = {name: join_names(list(group)) for name, group in rows.groupby("verdict")["measure"]}
        words = "production behaves as the study said"
        if verdict in ("worse", "better"):
            words = f"production is {verdict} than the study said ({by_verdict[verdict]})"
        if "cannot tell" in by_verdict:
            unsettled = f"these calls cannot tell about some measures ({by_verdict['cannot tell']})"
            words = f"{words}; {unsettled}" if verdict == "worse" else f"{unsettled}: give more, or a larger study"
        counts = f"{count_of(int(rows['calls'].iloc[0]), 'call')}, {count_of(int(rows['runs'].iloc[0]), 'run')}"
        return f"{key[0]}, {key[1]:g} s: {words}. {counts}."

    def finding(self) -> Finding:
        """Return sentences and table."""
        first, *rest = self.sentences
        shown = self.frame[[*_GROUP, "measure", "study", "production", "verdict"]]
        table: list[Block] = [] if shown.empty else [shown.rename(columns={"limit_s": "limit", "verdict": "it is"})]
        return Finding((first, *rest, *table))


def watch(study: Study, calls: pd.DataFrame) -> Watch:
    """Return whether production behaves as a study said.

    Calls that wait for a person, and those whose caller left, are not compared: no deadline ended them. calls: as
    `read_enforced_calls` returns them. Raises: ConfigurationError for calls of several graphs.
    """
    workflows = sorted(set(calls["workflow"]))
    if len(workflows) > 1:
        raise ConfigurationError(
            f"the spans are of {len(workflows)} graphs ({', '.join(workflows)}); choose one with --workflow"
        )
    groups = calls.groupby(["alternative", "alternative_options"], sort=False)
    rows: list[dict[str, Any]] = []
    notes: dict[tuple[str, float], list[str]] = {}
    not_compared: list[str] = []
    for (alternative, options), of_arm in sorted(groups, key=lambda item: order_of(*map(str, item[0]))):
        label = one_line(label_of(str(alternative), str(options)))
        for limit_s, some, runs in _by_limit(study, str(alternative), str(options), of_arm):
            where = f"{count_of(len(some), 'call')} of {label}"
            chosen = runs if isinstance(runs, str) else _one_condition(runs, limit_s)
            compared, left_out = _ended_by_graph_or_deadline(some)
            if isinstance(chosen, str):
                not_compared.append(f"{where}{chosen}")
            elif compared.empty:
                not_compared.append(f"{where} with {limit_s:g} s: no graph or deadline ended any; wait for more.")
            else:
                notes[label, limit_s] = [_cut_words(compared), *left_out]
                counts = {"alternative": label, "limit_s": limit_s, "runs": len(chosen), "calls": len(compared)}
                rows += [counts | row for row in _compare(_measured(chosen), _measured_calls(compared))]
    return Watch(
        frame=pd.DataFrame(rows, columns=_COLUMNS),
        notes=notes,
        not_compared=tuple(not_compared),
        study_id=str(study.manifest.get("study_id", "")),
        workflow=workflows[0],
        calls=len(calls),
        is_virtual=bool((study.runs["clock"].astype("str") == "virtual").any()),
    )


def _by_limit(
    study: Study, alternative: str, options: str, calls: pd.DataFrame
) -> Iterator[tuple[float, pd.DataFrame, pd.DataFrame | str]]:
    """Yield the calls of one alternative by limit, with the runs of the study, or why there are none."""
    runs = study.runs.astype({"alternative": "str", "alternative_options": "str"})
    measured = runs[(runs["alternative"] == alternative) & (runs["alternative_options"] == options)]
    if measured.empty:
        there = runs[["alternative", "alternative_options"]].drop_duplicates()
        names = [one_line(label_of(*row)) for row in there.itertuples(index=False, name=None)]
        remedy = _command(study, alternative, options, calls["limit_s"])
        yield math.nan, calls, f": the study has {join_names(names)}; run {remedy}."
        return
    limits = np.sort(measured["decision_timeout_s"].unique().astype("float64"))
    nearest = limits[np.abs(calls["limit_s"].to_numpy()[:, None] - limits).argmin(axis=1)]
    is_near = np.abs(calls["limit_s"].to_numpy() - nearest) <= LIMIT_WITHIN * nearest
    for limit_s in sorted(set(nearest[is_near])):
        yield limit_s, calls[is_near & (nearest == limit_s)], measured[measured["decision_timeout_s"] == limit_s]
    others = calls[~is_near]
    if len(others):
        least, most = f"{others['limit_s'].min():.3g}", f"{others['limit_s'].max():.3g}"
        remedy = _command(study, alternative, options, others["limit_s"])
        yield (
            math.nan,
            others,
            (
                f" with {least if least == most else f'{least} to {most}'} s: the study measured "
                f"{join_names([f'{limit:g}' for limit in limits])} s; run {remedy}."
            ),
        )


def _command(study: Study, alternative: str, options: str, limits: pd.Series[float]) -> str:
    """Return the command that measures what production ran."""
    variants = CATALOGUE[alternative].variants if alternative in CATALOGUE else {}
    variant = next((name for name in variants if options_of(alternative, name) == options), "")
    letter = letter_of(alternative) + (f":{variant}" if variant else "")
    graph = " --graph MODULE:GRAPH --enforced" if chosen_by(study.runs, study.manifest) == "enforce" else ""
    most_frequent_s = float(limits.round(3).mode().iloc[0])
    return f"docmind-lab compare --alternatives {letter} --decision-timeout {most_frequent_s:.3g}{graph}"


def _one_condition(runs: pd.DataFrame, limit_s: float) -> pd.DataFrame | str:
    """Return the runs without a fault, or all where each has one; in words, why there are several sorts."""
    without = runs[runs["fault"].astype("str") == "none"]
    runs = without if len(without) else runs
    several = [name for name in (*condition_columns(runs), "retries", "node_mode") if runs[name].nunique() > 1]
    levels = [
        f"{name.replace('_', ' ')} {join_names([level(value) for value in sorted(set(runs[name]))])}"
        for name in several
    ]
    if levels:
        return f" with {limit_s:g} s: the study has runs with {'; '.join(levels)}; give a study with one of them."
    return runs


def _ended_by_graph_or_deadline(calls: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    waited = calls["outcome"] == "interrupted"
    left = (calls["stop_reason"] == CallerLeft.stop_reason) & ~waited
    counts = {"that waited for a person": int(waited.sum()), "whose caller left": int(left.sum())}
    parts = [f"{count_of(count, 'call')} {words}" for words, count in counts.items() if count]
    return calls[~(waited | left)], [f"Not counted: {join_names(parts)}."] if parts else []


def _measured_calls(calls: pd.DataFrame) -> dict[str, Floats]:
    late_s = calls["caller_overrun_s"].to_numpy(dtype="float64")
    return {
        "answered_in_time": ((calls["outcome"] == "answered").to_numpy() & (late_s <= 0.0)).astype("float64"),
        "was_cut": calls["outcome"].isin(["partial", "timed_out"]).to_numpy(dtype="float64"),
        "caller_overrun_s": late_s,
    }


def _measured(runs: pd.DataFrame) -> dict[str, Floats]:
    was_cut = runs["stop_reason"].astype("str").isin(TIMEOUT_REASONS) | (runs["outcome"].astype("str") == "unfinished")
    known = {name: column_values(runs, name) for name in ("answered_in_time", "caller_overrun_s")}
    return {**known, "was_cut": np.asarray(was_cut, dtype="float64")}


def _compare(studied: dict[str, Floats], produced: dict[str, Floats]) -> Iterator[dict[str, Any]]:
    for measure in MEASURES:
        study, production = (measure.interval(values[measure.column]) for values in (studied, produced))
        row = {"measure": measure.words, "study": measure.text(study), "production": measure.text(production)}
        if isinstance(study, TooFewRuns) or isinstance(production, TooFewRuns):
            yield row | {"worse_by": math.nan, "low": math.nan, "high": math.nan, "verdict": "cannot tell"}
            continue
        by = difference_of(*((production, study) if measure.worse > 0 else (study, production)))
        verdict = _verdict(by, measure.margin)
        yield row | {"worse_by": by.estimate, "low": by.low, "high": by.high, "verdict": verdict}


def _verdict(worse_by: Interval, margin: float) -> Verdict:
    if worse_by.high < -margin:
        return "better"
    # First, so that a difference that is sure but too small to matter is none.
    if worse_by.high <= margin:
        return "as the study said"
    return "worse" if worse_by.low > 0.0 else "cannot tell"


def _cut_words(calls: pd.DataFrame) -> str:
    cut, threads = (
        _share_text(share_interval(int((calls[name] > 0).sum()), len(calls), CONFIDENCE))
        for name in ("requests_cut", "threads_running")
    )
    requests = count_of(int(calls["requests_cut"].sum()), "request")
    return (
        f"The deadline cut or refused requests in {cut} of calls ({requests}); a thread went on after the return in "
        f"{threads}."
    )


def _share_text(share: Interval) -> str:
    return f"{percent(share.estimate)} [{percent(share.low)}, {percent(share.high)}]"
