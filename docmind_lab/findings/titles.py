"""The title of a study: what was measured, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from docmind_lab.core.text import count_of, join_names
from docmind_lab.tables.conditions import budgets_in_words, in_words, profiles_of_servers

# Studies of before a manifest said what its systems are called.
_UNNAMED = {"supervisor": {"title": "DocMind supervisor", "asked": "questions"}}


def title_of(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> str:
    """Return the title of a study: system, timeout, inputs, latencies, faults, clock, seed."""
    if runs.empty:
        return "An empty study"
    timeout = join_names([f"{value:g}" for value in sorted(runs["decision_timeout_s"].unique())])
    names = sorted(str(name) for name in runs["workload"].unique())
    systems = [{**_UNNAMED.get(name, {}), **manifest.get("systems", {}).get(name, {})} for name in names]
    asked = join_names(sorted({str(system.get("asked", "runs")) for system in systems}))
    seeds, questions = int(runs["seed"].nunique()), max(1, int(runs["question_id"].nunique()))
    several = f"{count_of(seeds, 'run')} of " if seeds > questions else ""
    faults = sorted({str(fault) for fault in runs["fault"]} - {"none"})
    parts = [
        join_names([str(system.get("title", name)) for name, system in zip(names, systems, strict=True)]),
        f"{timeout} s decision timeout",
        f"{several}{count_of(min(seeds, questions), asked.removesuffix('s'))}",
        f"{' and '.join(sorted({str(p) or 'live' for p in runs['latency_profile']}))} latencies",
        *(f"fault {fault}" for fault in faults),
        *(["a router engine is asked first"] if runs["router_injection"].all() else []),
        *_servers_in_words(runs),
        *budgets_in_words(runs),
        _clocks(runs),
        *([] if _is_replayed(runs) else [f"seed {manifest.get('design', {}).get('seed', '?')}"]),
    ]
    return " · ".join(parts)


def _servers_in_words(runs: pd.DataFrame) -> list[str]:
    """What servers do when their client leaves, where that is not to stop at once, and how many adopt the deadline."""
    shares = runs["adoption"].unique()
    adopting = [in_words(runs.iloc[0], ["adoption"])] if len(shares) == 1 and shares[0] else []
    profiles = profiles_of_servers(runs)
    if profiles:
        return [f"servers behave as {join_names(profiles)} when their client leaves", *adopting]
    return [*([] if runs["stops_on_disconnect"].any() else ["servers go on when their client leaves"]), *adopting]


def _clocks(runs: pd.DataFrame) -> str:
    clocks = sorted({str(clock) for clock in runs["clock"]})
    return "replayed from traces" if _is_replayed(runs) else f"{' and '.join(clocks)} clock"


def _is_replayed(runs: pd.DataFrame) -> bool:
    return {str(clock) for clock in runs["clock"].unique()} == {"trace"}
