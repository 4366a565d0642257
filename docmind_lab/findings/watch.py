"""Whether production behaves as a study said: its calls as a table of runs, beside the runs of the study.

    result = watch(Study.load("my-study"), read_enforced_calls(["traces.jsonl"]))
    result               # what the calls show, and a table
    result.frame         # each alternative, limit and measure: study, production, verdict

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

from docmind_lab.core.alternative_catalogue import CATALOGUE, label_of, letter_of, options_of, order_of
from docmind_lab.core.errors import CallerLeft, ConfigurationError
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import TIMEOUT_REASONS
from docmind_lab.core.text import count_of, join_names, level, one_line, percent
from docmind_lab.findings.criteria import Criterion
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.findings.study import Study
from docmind_lab.statistics.differences import column_values
from docmind_lab.statistics.interval import Interval, difference_of
from docmind_lab.statistics.sample_size import TooFewRuns, gated_quantile
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import condition_columns
from docmind_lab.tables.manifest import chosen_by

LIMIT_WITHIN: Final = 0.02
"""The part of a limit by which a call's may differ: what a hop takes off the time that it was given."""

Verdict = Literal["as the study said", "better", "worse", "cannot tell"]

_SHARE_MARGIN: Final = 0.05


def _was_cut(runs: pd.DataFrame) -> pd.Series[float]:
    return (runs["stop_reason"].isin(TIMEOUT_REASONS) | (runs["outcome"] == "unfinished")).astype("float64")


def _overrun_s(runs: pd.DataFrame) -> pd.Series[float]:
    return pd.Series(column_values(runs, "caller_overrun_s"))


MEASURES: Final = (
    Criterion("answered_in_time", "answered by the deadline", 1, _SHARE_MARGIN),
    Criterion("was_cut", "cut by the deadline", -1, _SHARE_MARGIN, derived=_was_cut),
    Criterion("median_overrun_s", "median overrun", -1, HELD_WITHIN_S, " s", 3, _overrun_s, quantile=0.5),
    Criterion("p95_overrun_s", "p95 overrun", -1, HELD_WITHIN_S, " s", 3, _overrun_s, quantile=0.95),
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
        table = self.frame[[*_GROUP, "measure", "study", "production", "verdict"]]
        tables = [] if table.empty else [table.rename(columns={"limit_s": "limit", "verdict": "it is"})]
        verdicts = [
            {"alternative": name, "limit_s": limit_s, "verdict": verdict}
            for (name, limit_s), verdict in self.verdicts.items()
        ]
        numbers = {
            "study_id": self.study_id,
            "workflow": self.workflow,
            "calls": self.calls,
            "verdicts": verdicts,
            "not_compared": self.not_compared,
            "sentences": self.sentences,
        }
        return Finding((*self.sentences, *tables), numbers, {"measures": self.frame})


def watch(study: Study, calls: pd.DataFrame) -> Watch:
    """Return whether production behaves as a study said.

    Calls that wait for a person, and those whose caller left, are not compared: no deadline ended them. calls: as
    `read_enforced_calls` returns them. Raises: ConfigurationError for calls of several graphs.
    """
    workflows = sorted(set(calls["workload"]))
    if len(workflows) > 1:
        raise ConfigurationError(
            f"the spans are of {len(workflows)} graphs ({', '.join(workflows)}); choose one with --workflow"
        )
    rows: list[dict[str, Any]] = []
    notes: dict[tuple[str, float], list[str]] = {}
    not_compared: list[str] = []
    arms = calls.groupby(["alternative", "alternative_options"], sort=False)
    for (alternative, options), of_arm in sorted(arms, key=lambda item: order_of(*map(str, item[0]))):
        label = one_line(label_of(str(alternative), str(options)))
        runs = _runs_of(study, str(alternative), str(options))
        limits = _nearest_limits(runs, of_arm)
        for limit_s, some in of_arm.groupby(limits):
            chosen = _one_condition(runs[runs["decision_timeout_s"] == limit_s])
            compared, left_out = _ended_by_graph_or_deadline(some)
            why = chosen if isinstance(chosen, str) else "no graph or deadline ended any; wait for more."
            if isinstance(chosen, str) or compared.empty:
                not_compared.append(f"{count_of(len(some), 'call')} of {label} with {limit_s:g} s: {why}")
                continue
            notes[label, float(limit_s)] = [_cut_words(compared), *left_out]
            counts = {"alternative": label, "limit_s": limit_s, "runs": len(chosen), "calls": len(compared)}
            rows += [counts | row for row in _compare(chosen, compared)]
        others = of_arm[limits.isna()]
        if len(others):
            why = _not_measured(study, runs, others)
            not_compared.append(f"{count_of(len(others), 'call')} of {label}{why}; run {_command(study, others)}.")
    return Watch(
        frame=pd.DataFrame(rows, columns=_COLUMNS),
        notes=notes,
        not_compared=tuple(not_compared),
        study_id=str(study.manifest.get("study_id", "")),
        workflow=workflows[0],
        calls=len(calls),
        is_virtual=bool((study.runs["clock"].astype("str") == "virtual").any()),
    )


def _runs_of(study: Study, alternative: str, options: str) -> pd.DataFrame:
    runs = study.runs
    is_arm = (runs["alternative"].astype("str") == alternative) & (runs["alternative_options"].astype("str") == options)
    return runs[is_arm]


def _nearest_limits(runs: pd.DataFrame, calls: pd.DataFrame) -> pd.Series[float]:
    """Return for each call the limit of the runs that is near its own, seconds; NaN where none is."""
    if runs.empty:
        return pd.Series(math.nan, index=calls.index)
    limits = np.sort(runs["decision_timeout_s"].unique().astype("float64"))
    had = calls["decision_timeout_s"]
    nearest = pd.Series(limits[np.abs(had.to_numpy()[:, None] - limits).argmin(axis=1)], index=calls.index)
    return nearest.where((had - nearest).abs() <= LIMIT_WITHIN * nearest)


def _not_measured(study: Study, runs: pd.DataFrame, calls: pd.DataFrame) -> str:
    """Return in words which limits or alternatives the study has instead of those of the calls."""
    if runs.empty:
        there = study.runs[["alternative", "alternative_options"]].astype("str").drop_duplicates()
        names = [one_line(label_of(*row)) for row in there.itertuples(index=False, name=None)]
        return f": the study has {join_names(names)}"
    had = calls["decision_timeout_s"]
    with_s = " to ".join(dict.fromkeys(f"{limit_s:.3g}" for limit_s in (had.min(), had.max())))
    limits = join_names([f"{limit:g}" for limit in sorted(runs["decision_timeout_s"].unique())])
    return f" with {with_s} s: the study measured {limits} s"


def _command(study: Study, calls: pd.DataFrame) -> str:
    """Return the command that measures what production ran. calls: those of one alternative."""
    alternative, options = (str(calls[name].iloc[0]) for name in ("alternative", "alternative_options"))
    variants = CATALOGUE[alternative].variants if alternative in CATALOGUE else {}
    variant = next((name for name in variants if options_of(alternative, name) == options), "")
    letter = letter_of(alternative) + (f":{variant}" if variant else "")
    graph = " --graph MODULE:GRAPH --enforced" if chosen_by(study.runs, study.manifest) == "enforce" else ""
    most_frequent_s = float(calls["decision_timeout_s"].round(3).mode().iloc[0])
    return f"docmind-lab compare --alternatives {letter} --decision-timeout {most_frequent_s:.3g}{graph}"


def _one_condition(runs: pd.DataFrame) -> pd.DataFrame | str:
    """Return the runs without a fault, or all where each has one; in words, why there are several sorts."""
    without = runs[runs["fault"].astype("str") == "none"]
    runs = without if len(without) else runs
    several = [name for name in (*condition_columns(runs), "retries", "node_mode") if runs[name].nunique() > 1]
    levels = [
        f"{name.replace('_', ' ')} {join_names([level(value) for value in sorted(set(runs[name]))])}"
        for name in several
    ]
    return f"the study has runs with {'; '.join(levels)}; give a study with one of them." if levels else runs


def _ended_by_graph_or_deadline(calls: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    waited = calls["outcome"] == "interrupted"
    left = (calls["stop_reason"] == CallerLeft.stop_reason) & ~waited
    counts = {"that waited for a person": int(waited.sum()), "whose caller left": int(left.sum())}
    parts = [f"{count_of(count, 'call')} {words}" for words, count in counts.items() if count]
    return calls[~(waited | left)], [f"Not counted: {join_names(parts)}."] if parts else []


def _compare(runs: pd.DataFrame, calls: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for measure in MEASURES:
        study, production = (_interval(measure, side) for side in (runs, calls))
        row = {"measure": measure.words, "study": _text(measure, study), "production": _text(measure, production)}
        if isinstance(study, TooFewRuns) or isinstance(production, TooFewRuns):
            yield row | {"worse_by": math.nan, "low": math.nan, "high": math.nan, "verdict": "cannot tell"}
            continue
        by = difference_of(*((production, study) if measure.better < 0 else (study, production)))
        verdict = _verdict(by, measure.margin)
        yield row | {"worse_by": by.estimate, "low": by.low, "high": by.high, "verdict": verdict}


def _interval(measure: Criterion, runs: pd.DataFrame) -> Interval | TooFewRuns:
    """Return the measure with its interval, or how many runs are missing for it."""
    values = measure.values(runs)
    if measure.quantile is None:
        return share_interval(int(values.sum()), len(values), CONFIDENCE)
    return gated_quantile(values, measure.quantile, CONFIDENCE)


def _text(measure: Criterion, value: Interval | TooFewRuns) -> str:
    if isinstance(value, TooFewRuns):
        return value.text()
    return (
        _share_text(value) if measure.quantile is None else f"{measure.number(value.estimate)} {measure.bounds(value)}"
    )


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
        for name in ("requests_cut", "threads_left")
    )
    requests = count_of(int(calls["requests_cut"].sum()), "request")
    return (
        f"The deadline cut or refused requests in {cut} of calls ({requests}); a thread went on after the return in "
        f"{threads}."
    )


def _share_text(share: Interval) -> str:
    return f"{percent(share.estimate)} [{percent(share.low)}, {percent(share.high)}]"
