"""What a study asked: its conditions in words, and whether all of it is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from docmind_lab.analysis.conditions import with_arms
from docmind_lab.analysis.findings.second_budgets import is_budgeted, levels_in_words, second_budget_in_words
from docmind_lab.analysis.findings.tables import counted, joined, one_line
from docmind_lab.analysis.study import Study
from docmind_lab.core.budgets import NO_BUDGETS
from docmind_lab.interfaces.reports.model import Block, Facts, Prose, Section


def asked(study: Study) -> Section:
    """The first section."""
    blocks: list[Block] = [Facts(_facts(study.runs, study.manifest))]
    failed = study.manifest.get("failed_cells", [])
    if failed:
        blocks.append(Prose((f"{counted(len(failed), 'cell')} failed, and {_they(failed)} runs are missing:",)))
        blocks.append(Prose(tuple(f"{item['cell']}: {item['reason']}" for item in failed), "list"))
    left_out = study.manifest.get("left_out", [])
    if left_out:
        blocks.append(Prose(("Combinations of levels that cannot be, and were not run:",)))
        blocks.append(Prose(tuple(str(reason) for reason in left_out), "list"))
    return Section("asked", "What was asked", tuple(blocks))


def _they(items: Iterable[object]) -> str:
    return "its" if len(list(items)) == 1 else "their"


def _facts(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> dict[str, str]:
    design = manifest.get("design", {})
    arms = [one_line(arm) for arm in with_arms(runs)["arm"].cat.categories]
    facts = {
        "Study": str(manifest.get("study_id", "without a name")),
        "State": _state(manifest),
        "Runs": f"{len(runs):,} runs, {counted(runs['seed'].nunique(), 'seed')}, "
        f"{counted(runs['question_id'].nunique(), 'question')}",
        "Arms": ", ".join(arms),
        "Decision timeout": f"{joined([f'{value:g}' for value in sorted(runs['decision_timeout_s'].unique())])} s",
        "Observed until": f"{joined([f'{value:g}' for value in sorted(runs['horizon_s'].unique())])} s",
        "Latencies": joined([name or "live services" for name in _levels(runs, "latency_profile")]),
        "Faults": joined([name or "none" for name in _levels(runs, "fault")]),
        "Servers stop when a client leaves": _yes_or_no(runs["stops_on_disconnect"]),
        "Router injected": _yes_or_no(runs["router_injection"]),
        "Clock": joined(_levels(runs, "clock")),
    }
    if is_budgeted(runs):
        levels = levels_in_words(_levels(runs, "second_budgets"))
        facts["Second budgets"] = joined(
            [second_budget_in_words(level) if level == NO_BUDGETS else level for level in levels]
        )
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
    documents, passages = counted(library["documents"], "document"), counted(library["passages"], "passage")
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
