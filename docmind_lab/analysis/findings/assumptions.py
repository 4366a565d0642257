"""What a recommended decision timeout assumes of the latencies of its runs, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pandas as pd

from docmind_lab.analysis.findings.tables import joined, one_line
from docmind_lab.analysis.latency.dependence import base_name, correlation_in, without_correlation
from docmind_lab.analysis.latency.sessions import fit_correlation
from docmind_lab.core.levels import RECORDED

LOWER_BOUND: Final = (
    "drew a length beyond what the recording could observe and never end, so shares answered in time are lower bounds, "
    "and overruns and late work may be shorter in truth: record with a longer deadline to know"
)
"""How draws beyond what was observed bias a replay, after their number."""


def is_replay(runs: pd.DataFrame) -> bool:
    """Whether any of the runs replays a recording, whose shares answered in time are lower bounds."""
    return bool((runs["latency_profile"].astype("str") == RECORDED).any())


def assumptions_of(
    runs: pd.DataFrame, decided: pd.DataFrame, apart: Sequence[str], calls: pd.DataFrame | None = None
) -> Iterator[str]:
    """A sentence for each assumption that the runs rest on.

    Args:
        runs: The table of runs.
        decided: The frame of their recommendation.
        apart: The columns that tell its conditions apart.
        calls: The table of calls; those of a live endpoint are checked for slowness that they share.
    """
    live = runs.loc[runs["latency_profile"].astype("str") == "", "run_id"]
    if calls is not None and len(live):
        yield from _of_live_calls(calls[calls["run_id"].isin(set(live))])
    if is_replay(runs):
        yield (
            "A replay: calls that the recording cut are drawn from calls of their role that took longer, and never end "
            "where none was observed. So a share in time is a lower bound wherever a decision timeout is longer than "
            "the recording's; record with a longer one to know more."
        )
    simulated = sorted(set(runs["latency_profile"].astype("str")) - {"", RECORDED})
    correlations = {correlation_in(name) for name in simulated}
    if len(correlations) > 1:
        yield from _ranges(decided, [name for name in apart if name != "latency_profile"])
    elif correlations == {0.0}:
        base = base_name(simulated[0])
        yield (
            "Assumes that the calls of a run are slow independently of each other, which calls of a busy provider are "
            f"not: sweep latency_profile over {base}, {base}?correlation=0.5 and {base}?correlation=0.9 for the range."
        )
    elif correlations:
        yield f"Assumes that calls of a run are slow together, with a correlation of {correlations.pop():g}."


def _of_live_calls(calls: pd.DataFrame) -> Iterator[str]:
    """Whether the calls of a run are slow together at a live endpoint, where enough runs tell."""
    of_client = calls[(calls["seen_from"].astype("str") == "client") & (calls["outcome"].astype("str") == "ok")]
    part = of_client["role"].astype("str") + " " + of_client["kind"].astype("str")
    columns = {"session": of_client["run_id"].astype("str"), "part": part, "seconds": of_client["latency_s"]}
    found = fit_correlation(pd.DataFrame(columns))
    yield (
        ("Too few runs to tell whether the calls of a run are slow together." if found is None else found.in_words())
        + " A session is a run. What a run's calls share is in these shares; what runs of one hour share is not, so "
        "measure at the hours that matter."
    )


def _ranges(decided: pd.DataFrame, others: Sequence[str]) -> Iterator[str]:
    """How far the advice for each arm goes over the correlations that its runs had. others: of its condition."""
    profiles = decided["latency_profile"].astype("str")
    rows = decided.assign(correlation=profiles.map(correlation_in), profile=profiles.map(without_correlation))
    for values, group in rows.groupby(["arm", "profile", *others], observed=True, sort=True):
        arm, *where = (str(value) for value in values)
        reached = group[group["verdict"] == "reached"].sort_values("correlation")
        failed = sorted(set(group["correlation"]) - set(reached["correlation"]))
        found = [
            f"{timeout_s:g} s at {correlation:g}"
            for correlation, timeout_s in zip(reached["correlation"], reached["decision_timeout_s"], strict=True)
        ]
        found += [f"none of these at {correlation:g}" for correlation in failed]
        yield f"{one_line(arm)} ({', '.join(where)}) over the correlation of the calls of a run: {joined(found)}."
