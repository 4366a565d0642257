"""Whether production behaves as a study said, by intervals of both.

    found = watch(Study.load("my-study"), read_enforced_calls(["traces.jsonl"]))
    found.sentences
    found.frame          # each alternative, limit and measure: study, production, verdict

A measure is as the study said where the interval of its difference shows that it is not worse by more than a margin
that matters. It is worse where the interval shows any difference for the worse. Else the calls cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.conditions import condition_columns
from docmind_lab.analysis.manifest import chosen_by
from docmind_lab.analysis.statistics.differences import column_values
from docmind_lab.analysis.statistics.interval import Floats
from docmind_lab.analysis.statistics.shares import share_interval
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.text import count_of, join_names, level, one_line, percent
from docmind_lab.analysis.watch_measures import (
    CONFIDENCE,
    GROUP_CONFIDENCE,
    MEASURES,
    SHARE_MARGIN,
    Comparison,
    Verdict,
    compare_measure,
    measure_text,
    measures_in_words,
    share_in_words,
    what_would_settle,
)
from docmind_lab.core.catalogue import CATALOGUE, label_of, letter_of, options_of, order_of
from docmind_lab.core.deadlines import HELD_WITHIN_S
from docmind_lab.core.errors import CallerLeft, ConfigurationError
from docmind_lab.core.levels import TIMEOUT_REASONS

LIMIT_WITHIN: Final = 0.02
"""The part of a limit by which a call's may differ: what a hop takes off the time that it was given."""


@dataclass(frozen=True)
class Group:
    """The calls of one alternative with one limit, beside the study's runs.

    Attributes:
        label: Name of the alternative.
        limit_s: The limit that the study measured, in seconds.
        calls: How many calls were compared.
        runs: How many runs they were compared with.
        comparisons: One for each measure.
        left_out: Calls that were not compared, in words.
        cut_words: What was cut, and which threads went on, in words.
    """

    label: str
    limit_s: float
    calls: int
    runs: int
    comparisons: tuple[Comparison, ...]
    left_out: str
    cut_words: str

    @property
    def verdict(self) -> Verdict:
        """The verdict over all measures: worse in any, else unsettled in any, else as the study said or better."""
        verdicts = [comparison.verdict for comparison in self.comparisons]
        order: tuple[Verdict, ...] = ("worse", "cannot tell", "better")
        return next((verdict for verdict in order if verdict in verdicts), "as the study said")

    @property
    def sentences(self) -> list[str]:
        """What the group shows."""
        where = f"{one_line(self.label)}, {self.limit_s:g} s"
        counts = f"{count_of(self.calls, 'call')}, {count_of(self.runs, 'run')}"
        said = [f"{where}: {self._verdict_words()} ({counts})."]
        unsettled = self._of("cannot tell")
        if unsettled and self.verdict != "cannot tell":
            said.append(
                f"These calls cannot tell about {measures_in_words(unsettled)}; {what_would_settle(unsettled)}."
            )
        return [*said, self.cut_words, *([self.left_out] if self.left_out else [])]

    def _of(self, verdict: Verdict) -> list[Comparison]:
        return [comparison for comparison in self.comparisons if comparison.verdict == verdict]

    def _verdict_words(self) -> str:
        if self.verdict == "as the study said":
            return "production behaves as the study said"
        if self.verdict == "cannot tell":
            unsettled = self._of("cannot tell")
            measures, remedy = measures_in_words(unsettled), what_would_settle(unsettled)
            return f"these {count_of(self.calls, 'call')} cannot tell about {measures}; {remedy}"
        return f"production is {self.verdict} than the study said in {measures_in_words(self._of(self.verdict))}"


@dataclass(frozen=True)
class Watch:
    """Whether production behaves as a study said.

    Attributes:
        groups: One for each alternative and limit that both have.
        not_compared: What could not be compared, why, and what to do.
        study_id: Id of the study.
        workflow: Name of the graph in production.
        calls: How many enforced calls there are.
        is_virtual: Whether the study was measured in virtual time.
    """

    groups: tuple[Group, ...]
    not_compared: tuple[str, ...]
    study_id: str
    workflow: str
    calls: int
    is_virtual: bool

    @property
    def is_worse(self) -> bool:
        """Whether any group is worse than the study said."""
        return any(group.verdict == "worse" for group in self.groups)

    @property
    def sentences(self) -> list[str]:
        """What the calls show, in words."""
        workflow = f" of {self.workflow}" if self.workflow else ""
        said = [f"{count_of(self.calls, 'enforced call')}{workflow} beside study {self.study_id}."]
        said += [sentence for group in self.groups for sentence in group.sentences]
        said += [f"Not compared: {words}" for words in self.not_compared]
        if self.groups:
            said.append(
                f"A difference up to {percent(SHARE_MARGIN)} of calls or {HELD_WITHIN_S:g} s counts as none. Each "
                f"interval has {percent(CONFIDENCE, 1)}; production that is as the study said is called worse in "
                f"{percent(1 - GROUP_CONFIDENCE)} of cases at most."
            )
        if self.groups and self.is_virtual:
            said.append("The study ran in virtual time, so its overruns have no delays of a machine.")
        return said

    @property
    def frame(self) -> pd.DataFrame:
        """One row for each group and measure.

        Columns: alternative, limit_s, measure, study, production (intervals as text), worse_by, low, high (the
        difference in the measure's unit), verdict, more_calls.
        """
        rows = [_row(group, comparison) for group in self.groups for comparison in group.comparisons]
        return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS: Final = [
    *("alternative", "limit_s", "measure", "study", "production"),
    *("worse_by", "low", "high", "verdict", "more_calls"),
]


def watch(study: Study, calls: pd.DataFrame) -> Watch:
    """Return whether production behaves as a study said.

    Calls that wait for a person, and those whose caller left, are not compared: no deadline ended them.

    Args:
        study: The study.
        calls: Enforced calls, as `read_enforced_calls` returns them.

    Raises:
        ConfigurationError: The calls are of several graphs.
    """
    workflows = sorted(set(calls["workflow"]))
    if len(workflows) > 1:
        raise ConfigurationError(
            f"the spans are of {len(workflows)} graphs ({', '.join(workflows)}); choose one with --workflow"
        )
    answers: list[Group | str] = []
    arms = sorted(
        calls.groupby(["alternative", "alternative_options"], sort=False), key=lambda item: order_of(*map(str, item[0]))
    )
    for (alternative, options), of_arm in arms:
        answers += _groups_of(study, str(alternative), str(options), of_arm)
    return Watch(
        groups=tuple(answer for answer in answers if isinstance(answer, Group)),
        not_compared=tuple(answer for answer in answers if isinstance(answer, str)),
        study_id=str(study.manifest.get("study_id", "")),
        workflow=workflows[0],
        calls=len(calls),
        is_virtual=bool((study.runs["clock"].astype("str") == "virtual").any()),
    )


def _groups_of(study: Study, alternative: str, options: str, calls: pd.DataFrame) -> Iterator[Group | str]:
    """Yield the groups of one alternative by limit, and what cannot be compared in words."""
    runs, label = study.runs, label_of(alternative, options)
    is_arm = (runs["alternative"].astype("str") == alternative) & (runs["alternative_options"].astype("str") == options)
    measured = runs[is_arm]
    if measured.empty:
        there = runs[["alternative", "alternative_options"]].astype("str").drop_duplicates()
        names = [one_line(label_of(*row)) for row in there.itertuples(index=False, name=None)]
        remedy = _command(study, alternative, options, calls["limit_s"])
        yield f"{count_of(len(calls), 'call')} of {one_line(label)}: the study has {join_names(names)}; run {remedy}."
        return
    limits = np.sort(measured["decision_timeout_s"].unique().astype("float64"))
    nearest = limits[np.abs(calls["limit_s"].to_numpy()[:, None] - limits).argmin(axis=1)]
    is_near = np.abs(calls["limit_s"].to_numpy() - nearest) <= LIMIT_WITHIN * nearest
    for limit_s in sorted(set(nearest[is_near])):
        chosen = measured[measured["decision_timeout_s"] == limit_s]
        yield _group(label, limit_s, calls[is_near & (nearest == limit_s)], chosen)
    others = calls["limit_s"][~is_near]
    if len(others):
        least, most = f"{others.min():.3g}", f"{others.max():.3g}"
        had = f"{least} s" if least == most else f"{least} to {most} s"
        yield (
            f"{count_of(len(others), 'call')} of {one_line(label)} with {had}: the study measured "
            f"{join_names([f'{limit:g}' for limit in limits])} s; run {_command(study, alternative, options, others)}."
        )


def _command(study: Study, alternative: str, options: str, limits: pd.Series[float]) -> str:
    """Return the command that measures what production ran."""
    variants = CATALOGUE[alternative].variants if alternative in CATALOGUE else {}
    variant = next((name for name in variants if options_of(alternative, name) == options), "")
    letter = letter_of(alternative) + (f":{variant}" if variant else "")
    graph = " --graph MODULE:GRAPH --enforced" if chosen_by(study.runs, study.manifest) == "enforce" else ""
    most_frequent_s = float(limits.round(3).mode().iloc[0])
    return f"docmind-lab compare --alternatives {letter} --decision-timeout {most_frequent_s:.3g}{graph}"


def _group(label: str, limit_s: float, calls: pd.DataFrame, runs: pd.DataFrame) -> Group | str:
    where = f"{count_of(len(calls), 'call')} of {one_line(label)} with {limit_s:g} s"
    if (runs["fault"].astype("str") == "none").any():
        runs = runs[runs["fault"].astype("str") == "none"]
    several = [name for name in (*condition_columns(runs), "retries", "node_mode") if runs[name].nunique() > 1]
    if several:
        levels = [
            f"{name.replace('_', ' ')} {join_names([level(value) for value in sorted(set(runs[name]))])}"
            for name in several
        ]
        return f"{where}: the study has runs with {'; '.join(levels)}; give a study with one of them."
    interrupted, left = calls["outcome"] == "interrupted", calls["stop_reason"] == CallerLeft.stop_reason
    compared = calls[~(interrupted | left)]
    if compared.empty:
        return f"{where}: none of them was ended by its graph or its deadline; wait for calls that were."
    production, studied = _values_of_calls(compared), _values_of_runs(runs)
    comparisons = tuple(compare_measure(measure, studied, production) for measure in MEASURES)
    return Group(
        label=label,
        limit_s=limit_s,
        calls=len(compared),
        runs=len(runs),
        comparisons=comparisons,
        left_out=_left_out(int(interrupted.sum()), int((left & ~interrupted).sum())),
        cut_words=_cut_words(compared),
    )


def _values_of_calls(calls: pd.DataFrame) -> dict[str, Floats]:
    late_s = calls["caller_overrun_s"].to_numpy(dtype="float64")
    answered = (calls["outcome"] == "answered").to_numpy() & (late_s <= 0.0)
    was_cut = calls["outcome"].isin(["partial", "timed_out"]).to_numpy()
    return {
        "answered_in_time": answered.astype("float64"),
        "was_cut": was_cut.astype("float64"),
        "caller_overrun_s": late_s,
    }


def _values_of_runs(runs: pd.DataFrame) -> dict[str, Floats]:
    reason, outcome = runs["stop_reason"].astype("str"), runs["outcome"].astype("str")
    was_cut = (reason.isin(TIMEOUT_REASONS) | (outcome == "unfinished")).to_numpy()
    return {
        "answered_in_time": column_values(runs, "answered_in_time"),
        "was_cut": was_cut.astype("float64"),
        "caller_overrun_s": column_values(runs, "caller_overrun_s"),
    }


def _left_out(interrupted: int, left: int) -> str:
    parts = []
    if interrupted:
        parts.append(f"{count_of(interrupted, 'call')} that waited for a person")
    if left:
        parts.append(f"{count_of(left, 'call')} whose caller left")
    return f"Not counted: {join_names(parts)}." if parts else ""


def _cut_words(calls: pd.DataFrame) -> str:
    cut, threads = int((calls["requests_cut"] > 0).sum()), int((calls["threads_running"] > 0).sum())
    requests = int(calls["requests_cut"].sum())
    shares = [share_interval(count, len(calls), CONFIDENCE) for count in (cut, threads)]
    return (
        f"The deadline cut or refused requests in {share_in_words(shares[0])} of calls "
        f"({count_of(requests, 'request')}); a thread went on after the return in {share_in_words(shares[1])}."
    )


def _row(group: Group, comparison: Comparison) -> dict[str, Any]:
    worse_by = comparison.worse_by
    return {
        "alternative": one_line(group.label),
        "limit_s": group.limit_s,
        "measure": comparison.measure.words,
        "study": measure_text(comparison.measure, comparison.study),
        "production": measure_text(comparison.measure, comparison.production),
        "worse_by": math.nan if worse_by is None else worse_by.estimate,
        "low": math.nan if worse_by is None else worse_by.low,
        "high": math.nan if worse_by is None else worse_by.high,
        "verdict": comparison.verdict,
        "more_calls": comparison.more_calls,
    }
