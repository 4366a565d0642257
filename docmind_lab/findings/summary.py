"""The summary of a study: a table, a sentence for each alternative, and what to choose."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from docmind_lab.core.alternative_catalogue import CATALOGUE, Chooses, with_label
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import RUN_OUTCOMES
from docmind_lab.core.text import (
    count_of,
    duration,
    heading,
    in_python,
    join_names,
    level,
    number,
    one_line,
)
from docmind_lab.findings.choice_words import advice_of, caveats
from docmind_lab.findings.criteria import overran
from docmind_lab.findings.endings import ended_by_budget
from docmind_lab.findings.finding import Finding, MakesFinding, after_interrupt
from docmind_lab.findings.recommendation import recommend
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import (
    CONTROL,
    by_condition,
    condition_columns,
    conditions_in_words,
    is_replayed,
    with_arms,
)
from docmind_lab.tables.frames import rows_of
from docmind_lab.tables.manifest import chosen_by

FOREMOST: Final = (
    *("alternative", "runs", "answered_in_time", "overran", "caller_overrun_worst_s", "worked_on"),
    *("busy_after_deadline_s", "calls_after_deadline", "answered", "partial", "timed_out", "failed"),
)
"""Columns of the table that say most, the weightiest first."""

_SHARE = ("share", "low", "high")


@dataclass(frozen=True, repr=False)
class Summary(MakesFinding):
    """The summary of a study in words and numbers.

    title: description of what was measured, in a line. table: one row for each condition and arm; columns are
    documented in `summarise`. apart: columns of the condition that vary; none in a comparison.
    """

    title: str
    table: pd.DataFrame
    runs: pd.DataFrame
    manifest: Mapping[str, Any]
    apart: tuple[str, ...] = ()

    @functools.cached_property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each arm: what happened to the callers, what work went on, what the arm requires."""
        if self.apart:
            return self._condition_advice[0]
        by = chosen_by(self.runs, self.manifest)
        return tuple(_sentence(row, by) for row in self._rows)

    @functools.cached_property
    def advice(self) -> tuple[str, ...]:
        """Sentences of advice: what to choose, why, what is open, and what the runs cannot show."""
        if self.table.empty:
            return ()
        if self.apart:
            advice = self._condition_advice[1]
        else:
            cpu_s_per_run = self.manifest.get("machine_use", {}).get("cpu_s_per_run")
            by = chosen_by(self.runs, self.manifest)
            advice = tuple(advice_of(self._rows, self.runs, cpu_s_per_run, chosen_by=by))
        return (*advice, *caveats(self.manifest))

    @functools.cached_property
    def _condition_advice(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return _condition_advice(self.runs, chosen_by(self.runs, self.manifest))

    @property
    def _rows(self) -> list[dict[str, Any]]:
        return rows_of(self.table.reset_index())

    def display_table(self) -> pd.DataFrame:
        """Return the table for people: rounded, with units in the headings."""
        counts: dict[str, Any] = {heading(name): [level(v) for v in self.table[name]] for name in self.apart}
        counts |= {name.replace("_", " "): self.table[name] for name in ("answered", "partial", "timed_out")}
        # Columns of what did not happen to anyone would only push the others apart.
        rare = ("failed", "interrupted", "unfinished", "ended_by_budget")
        counts |= {name.replace("_", " "): self.table[name] for name in rare if self.table[name].any()}
        return pd.DataFrame(
            {
                **counts,
                "in time (95 %)": [
                    f"{share:.2f} [{low:.2f}, {high:.2f}]"
                    for share, low, high in zip(*(self.table[f"in_time_{name}"] for name in _SHARE), strict=True)
                ],
                "overran": [str(count) for count in self.table["overran"]],
                # Unfinished runs overran most: the median is one of them where they are half.
                "overran by median (s)": self._overrun("overran_median_s", 0.5),
                "overran by worst (s)": self._overrun("caller_overrun_worst_s"),
                "work went on": [str(count) for count in self.table["worked_on"]],
                "late calls per run": self._late("calls_after_deadline", 1),
                "late server seconds per run": self._late("busy_after_deadline_s", 2),
                "late tokens per run": self._late("tokens_after_deadline", 0),
                "source recall": [number(v, 2) for v in self.table["source_recall"]],
            },
            index=self.table.index,
        )

    @property
    def note(self) -> str:
        """What the headings of `display_table` mean."""
        slack = duration(HELD_WITHIN_S)
        seen_by = "as the traces of the runs say" if is_replayed(self.runs) else "from the servers' own log"
        return (
            f"Late: after the deadline, {seen_by}: calls received, seconds busy, tokens generated; "
            f"means per run. Work went on: runs in which anything was at work {slack} after the deadline. Overran: "
            f"runs whose caller was not back within {slack} of the deadline, and by how much. In "
            "time: the share of runs, with its Wilson interval. ≥: observation stopped before the end."
        )

    def _overrun(self, column: str, least_part: float = 0.0) -> list[str]:
        """Return an overrun of each arm, as a lower bound if this part of its late runs was not back at the horizon."""
        return [
            f"{'≥ ' if unfinished and unfinished >= least_part * late else ''}{number(value, 2)}" if late else ""
            for value, late, unfinished in zip(
                *(self.table[name] for name in (column, "overran", "unfinished")), strict=True
            )
        ]

    def _late(self, column: str, digits: int) -> list[str]:
        """Return a mean per run, as a lower bound if the work of a run went on at the horizon."""
        return [
            f"{'≥ ' if censored and value else ''}{number(value, digits)}"
            for value, censored in zip(self.table[column], self.table["work_censored"], strict=True)
        ]

    def short_table(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Return the table for a narrow terminal, and what every arm has in common, in words.

        Arms with the same row share one. Columns in which all arms are alike are left out and named in the words.
        """
        frame = self.display_table().rename(columns=_SHORTER)
        columns = [*map(heading, self.apart), *(name for name in _SHORT if name in frame)]
        frame = frame[columns]
        if self.apart or len(frame) < 2:
            return frame, ()
        alike = [name for name in columns if frame[name].nunique() == 1]
        frame = frame.drop(columns=alike)
        rows: dict[tuple[str, ...], list[str]] = {}
        for label, row in zip(frame.index, frame.to_numpy(), strict=True):
            rows.setdefault(tuple(map(str, row)), []).append(str(label))
        merged = pd.DataFrame(list(rows), columns=frame.columns, index=[_one_label(labels) for labels in rows.values()])
        return merged, tuple(self._in_common(alike))

    def _in_common(self, alike: Sequence[str]) -> Iterator[str]:
        """Return what all arms share, and that the length of the runs decides which are in time."""
        first = self.display_table().rename(columns=_SHORTER).iloc[0]
        phrases = [f"{name} {first[name]}" for name in alike if str(first[name]) not in ("", "0", "–")]
        if phrases:
            yield f"The same under each: {', '.join(phrases)}."
        control = self.runs[self.runs["alternative"].astype("str") == CONTROL].set_index("seed")["answered_in_time"]
        others = self.runs[self.runs["alternative"].astype("str") != CONTROL]
        others = others[others["seed"].isin(control.index)]
        if control.any() and len(others) and control.index.is_unique:
            equal = int((others["answered_in_time"] == others["seed"].map(control)).sum())
            yield (
                f"In {equal} of {len(others)} runs an alternative answered in time exactly where the run without a "
                "deadline did."
            )

    def as_shown(self) -> Finding:
        """Return the summary as a study shows itself: what to choose, what was measured, and a narrow table."""
        choice, *rest = map(in_python, self.advice or (self.title,))
        about = [self.title] if self.advice else []
        table, alike = self.short_table()
        return Finding((self._after_interrupt(choice), *about, table, *alike, *rest, *self.finding().words[-3:]))

    def finding(self) -> Finding:
        """Return the whole summary, for Python: advice, table and sentences."""
        # The corner named, or a table for screen readers begins with a heading that says nothing.
        table = self.display_table().rename_axis(index=None, columns="alternative")
        title = self._after_interrupt(self.title)
        return Finding((title, *map(in_python, self.advice), table, self.sentences, self.note))

    def _after_interrupt(self, words: str) -> str:
        return after_interrupt(str(self.manifest.get("interrupted", "")), words)


def summarise(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> Summary:
    """Return the summary of a `runs` table.

    Its table is indexed by label, with the columns of the condition that vary, if any do; alternative,
    alternative_options, runs; counts answered, answered_in_time, partial, timed_out, failed, unfinished,
    work_censored; in_time_share, in_time_low, in_time_high (Wilson, 95 %); overran (runs whose caller was not back
    within HELD_WITHIN_S of the deadline), overran_median_s (of those, NaN without any) and caller_overrun_worst_s (an
    unfinished run counts with its horizon, a lower bound), worked_on (runs in which work went on for longer than that),
    work_overrun_worst_s, threads_left (runs that left a thread), returned_median_s and _worst_s; means
    per run calls_after_deadline, busy_after_deadline_s, tokens_after_deadline, late_checkpoints, source_recall,
    answer_score; ended_by_budget (runs that a budget of tokens, calls or cost ended).
    """
    columns = condition_columns(runs)
    rows = []
    for condition, group in by_condition(with_arms(runs)):
        for arm, members in group.groupby("arm", observed=True, sort=True):
            rows.append(_row(str(arm), members) | {name: condition[name] for name in columns})
    table = pd.DataFrame(rows, columns=list(rows[0]) if rows else ["label"]).set_index("label")
    return Summary(_title_of(runs, manifest), table, runs, manifest, tuple(columns))


def _condition_advice(runs: pd.DataFrame, by: Chooses) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Yield advice on several conditions, which have no sentence for each arm."""
    if runs["decision_timeout_s"].nunique() < 2 or set(runs["alternative"].astype("str")) == {"unguarded"}:
        return (), ('study.compare_to("A") says what each arm changed, with intervals.',)
    result = recommend(runs, chosen_by=by)
    settings = (with_label(result.settings),) if result.settings else ()
    return result.sentences, (*result.choice, *settings)


def _row(label: str, group: pd.DataFrame) -> dict[str, Any]:
    share = share_interval(int(group["answered_in_time"].sum()), len(group))
    outcomes = group["outcome"].value_counts()
    # An unfinished run has overrun by its whole horizon at least: leaving it out would flatter the alternative.
    overrun = group["caller_overrun_s"].fillna(group["horizon_s"] - group["decision_timeout_s"])
    is_late = overran(group)
    means = ("calls_after_deadline", "busy_after_deadline_s", "tokens_after_deadline", "source_recall", "answer_score")
    return {
        "label": label,
        "alternative": str(group["alternative"].iloc[0]),
        "alternative_options": str(group["alternative_options"].iloc[0]),
        "runs": len(group),
        "in_time_share": share.estimate,
        "in_time_low": share.low,
        "in_time_high": share.high,
        **{name: int(outcomes.get(name, 0)) for name in RUN_OUTCOMES},
        "answered_in_time": int(group["answered_in_time"].sum()),
        "overran": int(is_late.sum()),
        "overran_median_s": float(overrun[is_late].median()),
        "caller_overrun_worst_s": float(overrun.max()),
        "late_checkpoints": float(group["late_checkpoints"].mean()),
        "work_censored": int(group["work_censored"].sum()),
        "worked_on": int((group["work_overrun_s"] > HELD_WITHIN_S).sum()),
        "work_overrun_worst_s": float(group["work_overrun_s"].max()),
        "threads_left": int((group["threads_left"] > 0).sum()),
        "returned_worst_s": float(group["returned_at_s"].max()),
        "returned_median_s": float(group["returned_at_s"].median()),
        **{name: float(group[name].mean()) for name in means},
        "ended_by_budget": int(ended_by_budget(group).sum()),
    }


# Headings of the display table in a narrow one.
_SHORTER = {
    "in time (95 %)": "answered in time",
    "overran by median (s)": "by median (s)",
    "overran by worst (s)": "by worst (s)",
    "late server seconds per run": "late server seconds",
}
# What fits 80 columns beside the names of the alternatives.
_SHORT = (
    *("answered in time", "partial", "failed", "interrupted", "unfinished", "ended by budget"),
    *("overran", "by median (s)", "by worst (s)", "work went on", "late server seconds", "source recall"),
)


def _one_label(labels: list[str]) -> str:
    """Return the label of a row that several arms share: their letters, or names where one has no letter."""
    if len(labels) == 1:
        return labels[0]
    parts = [label.split("  ", 1) for label in labels]
    return ", ".join(part[0] if len(part) == 2 and "(" not in part[1] else one_line("  ".join(part)) for part in parts)


def _sentence(row: Mapping[str, Any], by: Chooses) -> str:
    """Return the sentence of an arm: its callers, the work that went on, and what the alternative requires."""
    parts = [_callers(row), *_afterwards(row, by)]
    entry = CATALOGUE.get(row["alternative"])
    if entry is not None and entry.price:
        parts.append(f"the price: {entry.price}")
    return f"{one_line(row['label'])}: {'; '.join(parts)}."


def _callers(row: Mapping[str, Any]) -> str:
    text = f"{row['answered_in_time']} of {row['runs']} answered in time"
    late = row["answered"] - row["answered_in_time"]
    others = {"late": late, "with part of an answer": row["partial"], "with nothing": row["timed_out"]}
    others |= {
        "failed": row["failed"],
        "waiting for a person": row["interrupted"],
        "not back when observation stopped": row["unfinished"],
    }
    text += "".join(f", {count} {words}" for words, count in others.items() if count)
    if not row["overran"]:
        # Where a run failed at once its caller was back too: nobody had to wait, and nobody had an answer.
        return f"{text}; every caller was back within {duration(HELD_WITHIN_S)} of the deadline"
    least = "at least " if row["unfinished"] else ""
    late_callers = count_of(row["overran"], "caller")
    return f"{text}; {late_callers} waited too long, at worst {least}{duration(row['caller_overrun_worst_s'])}"


def _afterwards(row: Mapping[str, Any], by: Chooses) -> Iterator[str]:
    """Return what went on after the deadline, by each measure of it."""
    late, busy, runs = row["calls_after_deadline"], row["busy_after_deadline_s"], row["runs"]
    least = "at least " if row["work_censored"] else ""
    result = []
    if not math.isnan(busy) and (late > 0 or busy > 0):
        calls = f"{count_of(round(late * runs), 'call')} reached a server and " if late > 0 else ""
        result.append(f"after the deadline {calls}servers worked {least}{busy * runs:.2f} s in all")
    if row["late_checkpoints"] > 0:
        result.append(f"{count_of(round(row['late_checkpoints'] * runs), 'checkpoint')} came after the return")
    if row["worked_on"]:
        result.append(
            f"work of the graph went on in {count_of(row['worked_on'], 'run')}, "
            f"until {least}{row['work_overrun_worst_s']:.2f} s after the deadline"
        )
    if row["threads_left"]:
        result.append(f"{count_of(row['threads_left'], 'run')} left a thread at work")
    if result:
        yield f"{', '.join(result)}: {_why_it_went_on(row, by)}"
    elif math.isnan(busy):
        yield "no work of the graph was seen after the deadline"
    else:
        yield "nothing went on after the deadline"
    if math.isnan(busy):
        yield "what the servers did after the deadline cannot be known without their log"


def _why_it_went_on(row: Mapping[str, Any], by: Chooses) -> str:
    entry = CATALOGUE.get(row["alternative"])
    if entry is not None and entry.why_work_goes_on:
        return entry.why_work_goes_on
    if row["work_overrun_worst_s"] <= HELD_WITHIN_S:
        return "on the way as the deadline fell, and over within moments"
    # Doctor looks into graphs.
    where = "doctor --graph tells which node, docmind-lab show" if by == "enforce" else "show tells"
    return f"docmind-lab {where} which call"


# Studies of before a manifest said what its systems are called.
_UNNAMED = {"supervisor": {"title": "DocMind supervisor", "asked": "questions"}}


def _title_of(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> str:
    """Return the title of a study: system, timeout, inputs, latencies, faults, clock, seed."""
    if runs.empty:
        return "An empty study"
    names = sorted(str(name) for name in runs["workload"].unique())
    systems = [{**_UNNAMED.get(name, {}), **manifest.get("systems", {}).get(name, {})} for name in names]
    inputs = join_names(sorted({str(system.get("asked", "runs")) for system in systems}))
    seeds, questions = int(runs["seed"].nunique()), max(1, int(runs["question_id"].nunique()))
    several = f"{count_of(seeds, 'run')} of " if seeds > questions else ""
    timeouts, *conditions = conditions_in_words(runs)
    parts = [
        join_names([str(system.get("title", name)) for name, system in zip(names, systems, strict=True)]),
        timeouts,
        f"{several}{count_of(min(seeds, questions), inputs.removesuffix('s'))}",
        *conditions,
        *([] if is_replayed(runs) else [f"seed {manifest.get('design', {}).get('seed', '?')}"]),
    ]
    return " · ".join(parts)
