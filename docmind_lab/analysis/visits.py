"""Visits: the stretches of a run in which a role was at work, read off the calls table."""

from __future__ import annotations

from typing import Final

import pandas as pd

_ROUTER_ENGINE: Final = "router_engine"
_KEYS: Final = ["run_id", "role", "handoff"]


def visits_of(calls: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each visit of a role in the runs, in the order of run, start and role.

    Columns: run_id, role, handoff, started_at_s, ended_at_s (the horizon's if a call had not ended by then),
    lower_bound (it had not), first_timeout_s and first_remaining_s (`timeout_s` and `remaining_at_start_s` of the first
    call), outcomes (of its calls, a frozenset).

    A visit takes from its first request to the end of its last one, as the client saw them, retries and waits
    included; parallel tasks of one handoff are one visit. An injected router's calls are the retrieval role's.
    """
    horizons_s = runs.set_index("run_id")["horizon_s"]
    seen = calls[(calls["seen_from"] == "client") & calls["run_id"].isin(horizons_s.index)]
    rows = pd.DataFrame(
        {
            "run_id": seen["run_id"],
            "role": seen["role"].astype("str").replace(_ROUTER_ENGINE, "retrieval"),
            "handoff": seen["step"].str.split(".").str[0].astype("int64"),
            "started_at_s": seen["started_at_s"],
            "ended_at_s": seen["ended_at_s"].fillna(seen["run_id"].map(horizons_s)),
            "lower_bound": seen["ended_at_s"].isna(),
            "first_timeout_s": seen["timeout_s"],
            "first_remaining_s": seen["remaining_at_start_s"],
            "outcomes": seen["outcome"].astype("str"),
        }
    ).sort_values(["started_at_s", "run_id", "role"], kind="stable")
    if rows.empty:
        return rows
    made = rows.groupby(_KEYS, as_index=False).agg(
        started_at_s=("started_at_s", "min"),
        ended_at_s=("ended_at_s", "max"),
        lower_bound=("lower_bound", "any"),
        outcomes=("outcomes", frozenset),
    )
    # Not an aggregate "first", which would skip a NaN.
    firsts = rows.drop_duplicates(_KEYS)[[*_KEYS, "first_timeout_s", "first_remaining_s"]]
    made = made.merge(firsts, on=_KEYS)
    return made.sort_values(["run_id", "started_at_s", "role"], ignore_index=True)


def order_of_work(visits: pd.DataFrame) -> list[str]:
    """The roles in the order in which they first come.

    By who comes before whom in the runs that have both: a role that only long runs need starts late on the average,
    and still comes before one that every run needs after it.
    """
    firsts = visits.groupby(["run_id", "role"])["started_at_s"].min().unstack("role")
    roles = [str(role) for role in firsts.columns]
    before = {role: sum(_comes_before(firsts, other, role) for other in roles) for role in roles}
    medians_s = {str(role): float(value) for role, value in firsts.median().items()}
    return sorted(roles, key=lambda role: (before[role], medians_s[role], role))


def _comes_before(firsts: pd.DataFrame, one: str, other: str) -> bool:
    return bool((firsts[one] < firsts[other]).sum() > (firsts[one] > firsts[other]).sum())
