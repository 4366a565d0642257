"""What a comparison says: a table, a sentence for each alternative, and what to choose. Every number is of the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from docmind_lab.budgets import NO_BUDGETS
from docmind_lab.conditions import by_condition, varying, with_arms
from docmind_lab.findings.advice import advice_of
from docmind_lab.findings.enough import enough_of
from docmind_lab.findings.held import HELD_WITHIN_S
from docmind_lab.findings.prices import PRICES
from docmind_lab.findings.recommendation import recommend
from docmind_lab.findings.second_budgets import is_budgeted, levels_in_words, spending_of
from docmind_lab.findings.tables import counted, duration, joined, one_line
from docmind_lab.statistics import share_interval

_SHARE = ("share", "low", "high")


@dataclass(frozen=True)
class Summary:
    """A study in words and numbers.

    table: one row for each condition and arm; columns are documented in `summarise`. apart: columns of the condition
    that vary; none in a comparison. is_budgeted: some run had a second budget.
    """

    title: str
    table: pd.DataFrame
    sentences: tuple[str, ...]
    advice: tuple[str, ...]
    apart: tuple[str, ...] = ()
    is_budgeted: bool = False

    def display_table(self) -> pd.DataFrame:
        """The table as people read it: rounded, with units in the headings."""
        counts: dict[str, Any] = {_heading(name): [_level(v) for v in self.table[name]] for name in self.apart}
        counts |= {name.replace("_", " "): self.table[name] for name in ("answered", "partial", "timed_out")}
        # Columns of what did not happen to anyone would only push the others apart.
        counts |= {name: self.table[name] for name in ("failed", "unfinished") if self.table[name].any()}
        if self.is_budgeted:
            counts |= {"ended by 2nd budget": self.table["ended_by_budget"], "past it": self.table["past_budget"]}
        return pd.DataFrame(
            {
                **counts,
                "in time (95 %)": [
                    f"{share:.2f} [{low:.2f}, {high:.2f}]"
                    for share, low, high in zip(*(self.table[f"in_time_{name}"] for name in _SHARE), strict=True)
                ],
                "caller overrun median (s)": [_number(v, 3) for v in self.table["caller_overrun_median_s"]],
                "caller overrun worst (s)": [_number(v, 3) for v in self.table["caller_overrun_worst_s"]],
                "late calls per run": [_number(v, 1) for v in self.table["calls_after_deadline"]],
                "late server seconds per run": [_number(v, 2) for v in self.table["busy_after_deadline_s"]],
                "late tokens per run": [_number(v, 0) for v in self.table["tokens_after_deadline"]],
                "source recall": [_number(v, 2) for v in self.table["source_recall"]],
            },
            index=self.table.index,
        )

    def text(self) -> str:
        """Title and table as plain text."""
        return f"{self.title}\n{self.display_table().to_string()}"

    def markdown(self) -> str:
        """All of it as Markdown."""
        frame = self.display_table()
        header = "| | " + " | ".join(frame.columns) + " |"
        rule = "|---|" + "---:|" * len(frame.columns)
        rows = [
            f"| {label} | " + " | ".join(str(v) for v in row) + " |"
            for label, row in zip(frame.index, frame.to_numpy(), strict=True)
        ]
        parts = [f"# {self.title}", "\n".join([header, rule, *rows])]
        parts.append("\n".join(f"- {line}" for line in self.sentences))
        parts.append("\n\n".join(self.advice))
        parts.append(
            "Late: after the deadline, from the servers' own log: calls received, seconds busy, tokens generated; "
            "means per run. In time: the share of runs, with its Wilson interval. Figures: timeline.png, overrun.png. "
            "Tables: runs, calls and events (.parquet)."
        )
        return "\n\n".join(parts) + "\n"


def summarise(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> Summary:
    """The summary of a `runs` table.

    Its table is indexed by label, with the columns of the condition that vary, if any do; alternative,
    alternative_options, runs; counts answered, answered_in_time, partial, timed_out, failed, unfinished,
    work_censored; in_time_share, in_time_low, in_time_high (Wilson, 95 %); caller_overrun_median_s and _worst_s (an
    unfinished run counts with its horizon, a lower bound), work_overrun_worst_s, returned_median_s and _worst_s; means
    per run calls_after_deadline, busy_after_deadline_s, tokens_after_deadline, late_checkpoints, source_recall,
    answer_score; deadline_propagation (so second budgets are enforced), ended_by_budget (runs that a second budget
    ended), past_budget (runs that went past one), spending (both in words; empty without a second budget).
    """
    apart = tuple(column for column in varying(runs) if column != "horizon_s")
    rows = []
    for condition, group in by_condition(with_arms(runs)):
        for arm, members in group.groupby("arm", observed=True, sort=True):
            rows.append(_row(str(arm), members) | {name: condition[name] for name in apart})
    table = pd.DataFrame(rows, columns=list(rows[0]) if rows else ["label"]).set_index("label")
    if apart:
        sentences, advice = _of_conditions(runs)
    else:
        sentences, advice = tuple(_sentence(row) for row in rows), tuple(advice_of(rows, runs))
    advice = (*advice, *_of_its_making(manifest))
    return Summary(_title(runs, manifest), table, sentences, advice, apart, is_budgeted(runs))


def _of_its_making(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What of the runs was not as it looks: calls of a replay that nobody had recorded, a cap that ended the study."""
    calls = manifest.get("replayed_calls", {})
    if calls.get("not_recorded") or calls.get("of_another_alternative"):
        yield (
            f"A replay: {calls['recorded']:,} calls as they were recorded, {calls['of_another_alternative']:,} as "
            f"another alternative's were, {calls['not_recorded']:,} drawn from those of their role."
        )
    if "ended_by" in manifest:
        yield f"Ended by {manifest['ended_by']}: the runs that are here are whole, the others were not made."


def _of_conditions(runs: pd.DataFrame) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Several conditions have no sentence for each arm: what they are for is to choose how long, and by how much."""
    enough = tuple(enough_of(runs))
    if runs["decision_timeout_s"].nunique() < 2 or set(runs["alternative"].astype("str")) == {"unguarded"}:
        return enough, ('study.compare_to("A") says what each arm changed, with intervals.',)
    found = recommend(runs)
    settings = (f"Settings: {found.settings}",) if found.settings else ()
    return (*found.sentences, *enough), (*found.words.choice, *settings)


def _row(label: str, group: pd.DataFrame) -> dict[str, Any]:
    share = share_interval(int(group["answered_in_time"].sum()), len(group))
    outcomes = group["outcome"].value_counts()
    # An unfinished run has overrun by its whole horizon at least: leaving it out would flatter the alternative.
    overrun = group["caller_overrun_s"].fillna(group["horizon_s"] - group["decision_timeout_s"])
    row: dict[str, Any] = {
        "label": label,
        "alternative": str(group["alternative"].iloc[0]),
        "alternative_options": str(group["alternative_options"].iloc[0]),
        "deadline_propagation": bool(group["deadline_propagation"].all()),
        "runs": len(group),
        "in_time_share": share.estimate,
        "in_time_low": share.low,
        "in_time_high": share.high,
    }
    row |= {name: int(outcomes.get(name, 0)) for name in ("answered", "partial", "timed_out", "failed", "unfinished")}
    row |= {
        "answered_in_time": int(group["answered_in_time"].sum()),
        "caller_overrun_median_s": float(overrun.median()),
        "caller_overrun_worst_s": float(overrun.max()),
        "late_checkpoints": float(group["late_checkpoints"].mean()),
        "work_censored": int(group["work_censored"].sum()),
        "work_overrun_worst_s": float(group["work_overrun_s"].max()),
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
    spending = spending_of(group)
    row |= {"ended_by_budget": 0, "past_budget": 0, "spending": ""}
    if spending is not None:
        row |= {"ended_by_budget": spending.any_ended, "past_budget": spending.any_passed}
        row["spending"] = spending.text()
    return row


# Studies of before a manifest said what its systems are called.
_UNNAMED = {"supervisor": {"title": "DocMind supervisor", "asked": "questions"}}


def _title(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> str:
    if runs.empty:
        return "An empty study"
    timeout = joined([f"{value:g}" for value in sorted(runs["decision_timeout_s"].unique())])
    names = sorted(str(name) for name in runs["workload"].unique())
    systems = [{**_UNNAMED.get(name, {}), **manifest.get("systems", {}).get(name, {})} for name in names]
    asked = joined(sorted({str(system.get("asked", "runs")) for system in systems}))
    questions = int(runs["seed"].nunique())
    faults = sorted({str(fault) for fault in runs["fault"]} - {"none"})
    budgets = levels_in_words(str(level) for level in runs["second_budgets"].unique())
    parts = [
        joined([str(system.get("title", name)) for name, system in zip(names, systems, strict=True)]),
        f"{timeout} s decision timeout",
        counted(questions, asked.removesuffix("s")),
        f"{' and '.join(sorted({str(p) or 'live' for p in runs['latency_profile']}))} latencies",
        *(f"fault {fault}" for fault in faults),
        *([f"second budget {joined(budgets, 'or')}"] if budgets != [NO_BUDGETS] else []),
        f"{' and '.join(sorted({str(c) for c in runs['clock']}))} clock",
        f"seed {manifest.get('design', {}).get('seed', '?')}",
    ]
    return " · ".join(parts)


def _heading(column: str) -> str:
    return column.removesuffix("_s").replace("_", " ") + (" (s)" if column.endswith("_s") else "")


def _level(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _sentence(row: Mapping[str, Any]) -> str:
    """What happened, why, and what it costs."""
    name, runs = row["alternative"], row["runs"]
    parts = [_what_the_caller_saw(row), *([row["spending"]] if row["spending"] else [])]
    late = row["calls_after_deadline"]
    busy = row["busy_after_deadline_s"]
    if math.isnan(busy):
        parts.append("what the servers did afterwards cannot be known without their log")
    elif late > 0 or row["late_checkpoints"] > 0:
        parts.append(
            f"after the deadline {counted(round(late * runs), 'more call')} reached a server and "
            f"{counted(round(row['late_checkpoints'] * runs), 'checkpoint')} came after the return: "
            f"{_why_it_went_on(row)}"
        )
    elif busy > 0:
        parts.append(f"no call came after the deadline; servers were busy with earlier ones for {busy * runs:.2f} s")
    else:
        parts.append("nothing went on after the deadline")
    if name in PRICES:
        parts.append(f"the price: {PRICES[name]}")
    return f"{one_line(row['label'])}: {'; '.join(parts)}."


def _what_the_caller_saw(row: Mapping[str, Any]) -> str:
    runs, in_time = row["runs"], row["answered_in_time"]
    text = f"{in_time} of {runs} answered in time"
    late = row["answered"] - in_time
    if late:
        text += f", {late} late"
    if row["unfinished"]:
        text += f", {row['unfinished']} not at all by the horizon"
    worst = row["caller_overrun_worst_s"]
    if row["unfinished"]:
        return f"{text} (overrun at least {worst:.1f} s)"
    return f"{text}; the caller waited at most {duration(worst)} too long"


def _why_it_went_on(row: Mapping[str, Any]) -> str:
    by_construction = {
        "unguarded": "nobody enforces anything",
        "hard_timeout": "the graph does not know that its caller has left",
        "stop_flag": "the flag is looked at between steps only",
    }
    if row["alternative"] in by_construction:
        return by_construction[row["alternative"]]
    if row["work_overrun_worst_s"] <= HELD_WITHIN_S:
        return "on the way as the deadline fell, and cut within moments"
    return "the calls table tells which"
