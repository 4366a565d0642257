"""The summary of a study: a table, a sentence for each alternative, and what to choose."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from docmind_lab.core.catalogue import CATALOGUE, Chooses, with_label
from docmind_lab.core.deadlines import HELD_WITHIN_S
from docmind_lab.core.levels import RUN_OUTCOMES
from docmind_lab.core.text import (
    count_of,
    duration,
    guessed_shape,
    in_python,
    join_names,
    level,
    markdown_of_frame,
    node_in_words,
    number,
    one_line,
)
from docmind_lab.findings.advice import advice_of
from docmind_lab.findings.criteria import overran
from docmind_lab.findings.endings import ended_by_budget
from docmind_lab.findings.recommendation import recommend
from docmind_lab.findings.recommendation_words import LOWER_BOUND
from docmind_lab.findings.titles import title_of
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.conditions import CONTROL, by_condition, condition_columns, with_arms
from docmind_lab.tables.manifest import chosen_by

_SHARE = ("share", "low", "high")


@dataclass(frozen=True)
class Summary:
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
        return self._condition_advice[0] if self.apart else tuple(map(_sentence, self._rows))

    @functools.cached_property
    def advice(self) -> tuple[str, ...]:
        """Sentences of advice: what to choose, why, what is open, and what the runs cannot show."""
        if self.table.empty:
            return ()
        if self.apart:
            advice = self._condition_advice[1]
        else:
            measured = (self._rows, self.runs, self._cpu_s_per_run)
            advice = tuple(advice_of(*measured, chosen_by=chosen_by(self.runs, self.manifest)))
        return (*advice, *_caveats(self.manifest))

    @functools.cached_property
    def _condition_advice(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return _condition_advice(self.runs, chosen_by(self.runs, self.manifest))

    @property
    def _cpu_s_per_run(self) -> float | None:
        measured = self.manifest.get("machine_use", {}).get("cpu_s_per_run")
        return None if measured is None else float(measured)

    @property
    def _rows(self) -> list[Mapping[str, Any]]:
        return [
            {str(name): value for name, value in row.items()} for row in self.table.reset_index().to_dict("records")
        ]

    def display_table(self) -> pd.DataFrame:
        """Return the table for people: rounded, with units in the headings."""
        counts: dict[str, Any] = {_heading(name): [level(v) for v in self.table[name]] for name in self.apart}
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
                "overran by median (s)": [number(v, 2, "") for v in self.table["overran_median_s"]],
                "overran by worst (s)": self._worst(),
                "work went on": [str(count) for count in self.table["worked_on"]],
                "late calls per run": self._late("calls_after_deadline", 1),
                "late server seconds per run": self._late("busy_after_deadline_s", 2),
                "late tokens per run": self._late("tokens_after_deadline", 0),
                "source recall": [number(v, 2) for v in self.table["source_recall"]],
            },
            index=self.table.index,
        )

    def _worst(self) -> list[str]:
        """Return the worst overrun of each arm, as a lower bound if a run was not back at the horizon."""
        return [
            f"{'≥ ' if unfinished else ''}{number(worst, 2)}" if overran else ""
            for overran, worst, unfinished in zip(
                *(self.table[name] for name in ("overran", "caller_overrun_worst_s", "unfinished")), strict=True
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
        columns = [*map(_heading, self.apart), *(name for name in _SHORT if name in frame)]
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

    def text(self) -> str:
        """Return title, choice and table as plain text, for Python."""
        choice = f"{in_python(self.advice[0])}\n" if self.advice else ""
        return f"{self.title}\n{choice}{self.display_table().to_string()}"

    def markdown(self) -> str:
        """Return the whole summary as Markdown, for Python."""
        parts = [f"# {self.title}"]
        parts += [f"**{in_python(line)}**" if not place else in_python(line) for place, line in enumerate(self.advice)]
        parts.append(markdown_of_frame(self.display_table()))
        parts.append("\n".join(f"- {line}" for line in self.sentences))
        parts.append(
            f"Late: after the deadline, {_seen_by(self.runs)}: calls received, seconds busy, tokens generated; "
            "means per run. Work went on: runs in which anything was at work 150 ms after the deadline. Overran: runs "
            "whose caller was not back within 150 ms of the deadline, and by how much. In "
            "time: the share of runs, with its Wilson interval. ≥: observation stopped before the end. "
            "Figures: timeline.png, overrun.png. "
            "Tables: runs, calls and events (.parquet)."
        )
        return "\n\n".join(parts) + "\n"


def summarise(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> Summary:
    """Return the summary of a `runs` table.

    Its table is indexed by label, with the columns of the condition that vary, if any do; alternative,
    alternative_options, runs; counts answered, answered_in_time, partial, timed_out, failed, unfinished,
    work_censored; in_time_share, in_time_low, in_time_high (Wilson, 95 %); overran (runs whose caller was not back
    within 150 ms of the deadline), overran_median_s (of those, NaN without any) and caller_overrun_worst_s (an
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
    return Summary(title_of(runs, manifest), table, runs, manifest, tuple(columns))


def _caveats(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield caveats: of what a user's graph did not do, unrecorded calls of a replay, a cap that ended runs."""
    if manifest.get("no_model_calls"):
        yield (
            "No run called a model, so these are times of the graph's own code. If one should have, look for a caught "
            "exception, a missing setting, or an input that does not lead there."
        )
    for line, runs in manifest.get("loops_blocked", {}).items():
        yield (
            f"In {count_of(runs, 'run')} of E {line or 'a coroutine'} blocked the event loop past the deadline. The "
            "caller was outside the loop (invoke) and left it behind; one that awaits E (ainvoke) waits until the "
            "block ends."
        )
    for key, runs in manifest.get("errors_in_state", {}).items():
        yield (
            f"In {count_of(runs, 'run')} the graph came to its end with an error of its own in its state, under {key}. "
            "They count as they ended, such as answered."
        )
    for key, runs in manifest.get("outputs_not_set", {}).items():
        yield (
            f"In {count_of(runs, 'run')} the graph came to its end without a value of {key}, which it declares as its "
            "output. They count as they ended, such as answered."
        )
    yield from _on_answers(manifest)
    missing = manifest.get("never_reached", {})
    if missing:
        words = {name: node_in_words(name) for name in missing.get("nodes", ())}
        plain = {**missing, "nodes": [name for name, said in words.items() if said == f"node {name}"]}
        names = [f"{kind[:-1] if len(each) == 1 else kind} {join_names(each)}" for kind, each in plain.items() if each]
        names += [said for name, said in words.items() if said != f"node {name}"]
        yield f"No run reached {join_names(names)}, of which these numbers say nothing."
    calls = manifest.get("replayed_calls", {})
    if any(calls.get(name) for name in ("not_recorded", "of_another_alternative", "cut_in_the_recording")):
        yield (
            f"A replay: {calls['recorded']:,} calls as they were recorded, {calls['of_another_alternative']:,} as "
            f"another alternative's were, {calls['not_recorded']:,} drawn from those of their role; "
            f"{calls['cut_in_the_recording']:,} were cut in the recording, and what follows the cut is drawn."
        )
    if calls.get("longer_than_observed"):
        yield f"{count_of(calls['longer_than_observed'], 'call')} of the replay {LOWER_BOUND}."
    for system in manifest.get("systems", {}).values():
        yield from system.get("notes", ())
    if "ended_by" in manifest:
        yield f"Ended by {manifest['ended_by']}: the runs that are here are whole, the others were not made."


_NOT_THERE = (
    "the graph asked for the {}, which the simulated store does not have. The answers are made up, in the shape that "
    "was asked for: their times count, and what they say does not."
)


def _on_answers(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on answers that were made up, and on requests that failed."""
    for what, runs in manifest.get("made_up_answers", {}).items():
        kind, _, name = what.partition(" ")
        said = guessed_shape(name) if kind == "shape" else _NOT_THERE.format(what)
        yield f"In {count_of(runs, 'run')} {said}"
    if calls := manifest.get("failed_calls"):
        share = calls["failed"] / calls["requests"]
        where = f", most of them in {calls['node']}" if calls["node"] else ""
        yield (
            f"{calls['failed']:,} of {count_of(calls['requests'], 'request')} failed ({share:.1%}{where}), by an error "
            "and not by the deadline."
        )


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
    row: dict[str, Any] = {
        "label": label,
        "alternative": str(group["alternative"].iloc[0]),
        "alternative_options": str(group["alternative_options"].iloc[0]),
        "runs": len(group),
        "in_time_share": share.estimate,
        "in_time_low": share.low,
        "in_time_high": share.high,
    }
    row |= {name: int(outcomes.get(name, 0)) for name in RUN_OUTCOMES}
    row |= {
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
    }
    for name in (
        "calls_after_deadline",
        "busy_after_deadline_s",
        "tokens_after_deadline",
        "source_recall",
        "answer_score",
    ):
        row[name] = float(group[name].mean())
    return row | {"ended_by_budget": int(ended_by_budget(group).sum())}


def _heading(column: str) -> str:
    return column.removesuffix("_s").replace("_", " ") + (" (s)" if column.endswith("_s") else "")


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


def _sentence(row: Mapping[str, Any]) -> str:
    """Return the sentence of an arm: its callers, the work that went on, and what the alternative requires."""
    parts = [_callers(row), *_afterwards(row)]
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
    return (
        f"{text}; {row['overran']} callers waited too long, at worst {least}{duration(row['caller_overrun_worst_s'])}"
    )


def _afterwards(row: Mapping[str, Any]) -> Iterator[str]:
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
        yield f"{', '.join(result)}: {_why_it_went_on(row)}"
    elif math.isnan(busy):
        yield "no work of the graph was seen after the deadline"
    else:
        yield "nothing went on after the deadline"
    if math.isnan(busy):
        yield "what the servers did after the deadline cannot be known without their log"


def _why_it_went_on(row: Mapping[str, Any]) -> str:
    entry = CATALOGUE.get(row["alternative"])
    if entry is not None and entry.why_work_goes_on:
        return entry.why_work_goes_on
    if row["work_overrun_worst_s"] <= HELD_WITHIN_S:
        return "on the way as the deadline fell, and over within moments"
    return "docmind-lab doctor --graph tells which node, docmind-lab show which call"


def _seen_by(runs: pd.DataFrame) -> str:
    """Say where what happened after the deadline is from."""
    is_replay = {str(clock) for clock in runs["clock"].unique()} == {"trace"}
    return "as the traces of the runs say" if is_replay else "from the servers' own log"
