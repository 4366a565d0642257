"""The sections of a report that are words: what was asked, what not to conclude, how the study was made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from docmind_lab.core.text import count_of, join_names, one_line
from docmind_lab.findings.study import Study
from docmind_lab.statistics.sample_size import quantile_name, runs_needed
from docmind_lab.tables.conditions import budgets_in_words, by_condition, profiles_of_servers, with_arms
from docmind_lab.tables.manifest import flatten
from docmind_lab.views.reports.report_model import Block, Facts, Prose, Section, Table


def question_section(study: Study) -> Section:
    """Return the section on what was asked: conditions, arms, runs."""
    blocks: list[Block] = [Facts(_facts(study.runs, study.manifest))]
    failed = study.manifest.get("failed_cells", [])
    if failed:
        blocks.append(Prose((f"{count_of(len(failed), 'cell')} failed, and {_possessive(failed)} runs are missing:",)))
        blocks.append(Prose(tuple(f"{item['cell']}: {item['reason']}" for item in failed), "list"))
    left_out = study.manifest.get("left_out", [])
    if left_out:
        blocks.append(Prose(("Combinations of levels that cannot be, and were not run:",)))
        blocks.append(Prose(tuple(str(reason) for reason in left_out), "list"))
    return Section("asked", "What was asked", tuple(blocks))


def _possessive(items: Iterable[object]) -> str:
    return "its" if len(list(items)) == 1 else "their"


def _facts(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> dict[str, str]:
    design = manifest.get("design", {})
    arms = [one_line(arm) for arm in with_arms(runs)["arm"].cat.categories]
    profiles = profiles_of_servers(runs)
    facts = {
        "Study": str(manifest.get("study_id", "without a name")),
        "State": _state(manifest),
        "Runs": f"{len(runs):,} runs, {count_of(runs['seed'].nunique(), 'seed')}, "
        f"{count_of(runs['question_id'].nunique(), 'question')}",
        "Arms": ", ".join(arms),
        "Decision timeout": f"{join_names([f'{value:g}' for value in sorted(runs['decision_timeout_s'].unique())])} s",
        "Observed until": f"{join_names([f'{value:g}' for value in sorted(runs['horizon_s'].unique())])} s",
        "Latencies": join_names([name or "live services" for name in _levels(runs, "latency_profile")]),
        "Faults": join_names([name or "none" for name in _levels(runs, "fault")]),
        "Servers stop when a client leaves": (
            join_names(profiles) if profiles else _yes_or_no(runs["stops_on_disconnect"])
        ),
        "Router injected": _yes_or_no(runs["router_injection"]),
        "Clock": join_names(_levels(runs, "clock")),
    }
    if runs["adoption"].any():
        facts["Hops that adopt the deadline"] = join_names(
            [f"{share:.0%}" for share in sorted(runs["adoption"].unique())]
        )
    if budgets := budgets_in_words(runs):
        facts["Budgets"] = budgets[0]
    if "corpus" in design:
        facts["Documents"] = _documents(design)
    if "questions" in design:
        questions = design["questions"]
        facts["Questions"] = f"{questions['count']} of the user's own ({questions['digest'][:12]})"
    if "seed" in design:
        facts["First seed"] = str(design["seed"])
    return facts


def _documents(design: Mapping[str, Any]) -> str:
    name, library = str(design["corpus"]), design.get("library")
    if library is None:
        return name.replace("_", " ")
    documents, passages = count_of(library["documents"], "document"), count_of(library["passages"], "passage")
    return f"{documents} of the user's own, {passages} ({name})"


def _state(manifest: Mapping[str, Any]) -> str:
    if manifest.get("complete", False):
        return "complete"
    if manifest.get("failed_cells"):
        return "not complete: some cells failed, and the same call tries them again"
    return "not complete: everything here is of the runs that are done"


def _levels(runs: pd.DataFrame, column: str) -> list[str]:
    return sorted({str(value) for value in runs[column]})


def _yes_or_no(values: pd.Series[bool]) -> str:
    return "both" if values.nunique() > 1 else "yes" if bool(values.iloc[0]) else "no"


_QUANTILES = (0.5, 0.9, 0.95, 0.99)


def limits_section(
    runs: pd.DataFrame, columns: Sequence[str], not_drawn: Sequence[str], absent: Sequence[str], *, complete: bool
) -> Section:
    """Return the section on what the study cannot show.

    columns: in which its conditions differ. not_drawn: conditions without figures. absent: what could not be made.
    """
    blocks: list[Block] = [Prose(tuple(_lines(runs, columns, complete)), "list")]
    if not_drawn:
        drawn = sum(1 for _ in by_condition(runs)) - len(not_drawn)
        blocks.append(Prose((f"Figures are drawn for {count_of(drawn, 'condition')}; these are in the tables only:",)))
        blocks.append(Prose(tuple(not_drawn), "list"))
    if absent:
        blocks.append(Prose(("Not in this report, and why:",)))
        blocks.append(Prose(tuple(absent), "list"))
    return Section("limits", "What not to conclude", tuple(blocks))


def _lines(runs: pd.DataFrame, columns: Sequence[str], complete: bool) -> Iterator[str]:
    if not complete:
        yield "The study is not complete: the runs that are missing may differ from those that are here."
    yield _rare_events(runs, columns)
    profiles = sorted({str(name) for name in runs["latency_profile"]} - {""})
    if profiles:
        yield (
            f"Latencies are those of {join_names(profiles)}, not of your provider, and the model is scripted: what was "
            "measured is time and what is found, not how well a language model writes."
        )
    if "virtual" in set(runs["clock"].astype("str")):
        yield (
            "In virtual time Python's own work takes none: a real run is later by milliseconds, and differences of "
            "that size cannot be seen here. The wall clock shows them."
        )
    if "wall" in set(runs["clock"].astype("str")):
        yield "On the wall clock differences of a few milliseconds are noise of the machine."
    if runs["busy_after_deadline_s"].isna().any():
        yield "Without the log of a live server nobody knows what it did after the deadline: NaN is not 0."
    if set(runs["fault"].astype("str")) <= {"", "none"}:
        yield "No fault was injected: calls that hang, trickle or fail set the arms further apart than these did."
    yield (
        "Intervals are of this study's questions and latencies, drawn again; they say nothing of other questions, "
        "graphs or loads. Bands of curves hold at each instant, not for a whole curve at once."
    )
    if len(columns) > 1:
        yield "Conditions are compared one by one: no interaction of factors was tested."


def _rare_events(runs: pd.DataFrame, columns: Sequence[str]) -> str:
    sizes = with_arms(runs).groupby([*columns, "arm"], observed=True).size()
    least = int(sizes.min())
    known = [quantile_name(q) for q in _QUANTILES if runs_needed(q) <= least]
    missing = [(quantile_name(q), runs_needed(q)) for q in _QUANTILES if runs_needed(q) > least]
    enough = f"enough for {join_names(known)}" if known else "not enough for any quantile"
    needed = f"; {', '.join(f'{name} needs {number}' for name, number in missing)}" if missing else ""
    are = "is" if least == 1 else "are"
    return f"{count_of(least, 'run')} of an arm in a condition {are} {enough}{needed}: rare events are not seen."


_MADE_OF = {
    "design": "The design",
    "settings": "The settings",
    "versions": "Versions",
    "machine": "The machine",
}
# Beyond this a value (the quantiles of a profile) is for a machine: the manifest has it whole.
_LONGEST_VALUE = 160


def provenance_section(study: Study) -> Section:
    """Return the last section: what determined the runs, and the machine they ran on."""
    manifest = study.manifest
    facts = {
        name.replace("_", " "): str(manifest[name]) for name in ("created_utc", "schema_version") if name in manifest
    }
    blocks: list[Block] = [Facts(facts)] if facts else []
    for name, caption in _MADE_OF.items():
        values = manifest.get(name)
        if isinstance(values, Mapping) and values:
            blocks.append(_manifest_table(caption, values))
    return Section("making", "How it was made", tuple(blocks))


def _manifest_table(caption: str, values: Mapping[str, Any]) -> Table:
    flat = flatten(values)
    shown = pd.DataFrame({"field": list(flat), "value": [_value_text(value) for value in flat.values()]}, dtype="str")
    return Table(caption, shown, left=frozenset({"value"}))


def _value_text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} … ({len(text):,} characters)"
