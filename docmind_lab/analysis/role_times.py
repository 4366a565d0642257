"""The time that each role takes in the runs of a study, from which an allocation of the budget is made.

    times = role_times(training.calls, training.runs)
    LearnedPercentile(90, times.percentile_s(90))

A visit is a stretch of a run in which a role was at work, read off the calls table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError

_ROUTER_ENGINE: Final = "router_engine"
_KEYS: Final = ["run_id", "role", "handoff"]


def visits_of(calls: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each visit of a role in the runs, in the order of run, start and role.

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
    """Return the roles in the order in which they first appear.

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


@dataclass(frozen=True)
class RoleTimes:
    """The seconds that each role took in the runs of a training study.

    seconds: of each run in which the role was called, all its visits together; roles in the order of work.
    seeds: of the runs. Runs that are to judge an allocation have other ones, or it has seen their latencies before.
    """

    seconds: Mapping[str, tuple[float, ...]]
    seeds: frozenset[int]

    def __repr__(self) -> str:
        return f"RoleTimes: {self._describe()}\n{self._display_frame().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return f"<p>RoleTimes: {escape(self._describe())}</p>{self._display_frame().to_html(index=False, border=0)}"

    def _describe(self) -> str:
        seeds = f"seed {min(self.seeds)}" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        between = f", {min(self.seeds)} to {max(self.seeds)}" if len(self.seeds) > 1 else ""
        return f"learned from {seeds}{between}"

    def _display_frame(self) -> pd.DataFrame:
        """Return a row for each role: in how many runs it was called, and how long it took."""
        columns = {"mean (s)": self.mean_s(), "median (s)": self.percentile_s(50), "p90 (s)": self.percentile_s(90)}
        shown = {name: [f"{of_role[role]:.3f}" for role in self.seconds] for name, of_role in columns.items()}
        runs = [len(values) for values in self.seconds.values()]
        return pd.DataFrame({"role": list(self.seconds), "runs": runs, **shown})

    def mean_s(self) -> dict[str, float]:
        """Return the mean seconds of each role."""
        return {role: float(np.mean(values)) for role, values in self.seconds.items()}

    def percentile_s(self, percentile: float) -> dict[str, float]:
        """Return this percentile of each role's seconds. Raises: ConfigurationError unless in (0, 100)."""
        if not 0 < percentile < 100:
            raise ConfigurationError(f"percentile must be above 0 and below 100, not {percentile!r}; try 90")
        return {role: float(np.percentile(values, percentile)) for role, values in self.seconds.items()}

    def require_other_seeds(self, judged: Iterable[int]) -> None:
        """Require that none of these seeds was used in training. Raises: ConfigurationError naming some that were."""
        known = sorted(self.seeds.intersection(int(seed) for seed in judged))
        if known:
            shown = ", ".join(str(seed) for seed in known[:5])
            raise ConfigurationError(
                f"seeds {shown} are among those the times were learned from, so these runs cannot judge them; "
                f"choose a study seed above {max(self.seeds)}"
            )


def role_times(calls: pd.DataFrame, runs: pd.DataFrame) -> RoleTimes:
    """Learn each role's times from the unguarded runs of a training study; judge on other seeds.

    calls, runs: its tables; only runs of the control count, since every other alternative cuts what it would teach. A
    call that had not ended by the horizon counts with the time until then, so that a hang is long and not left out;
    roles after it were not called. What a visit is: see `visits_of`.

    Raises: ConfigurationError without runs of the control.
    """
    taught = runs[runs["alternative"] == "unguarded"]
    visits = visits_of(calls, taught)
    if visits.empty:
        raise ConfigurationError("there is nothing to learn from: the study needs runs of the alternative 'unguarded'")
    visits["seconds"] = visits["ended_at_s"] - visits["started_at_s"]
    of_runs = visits.groupby(["role", "run_id"])["seconds"].sum()
    return RoleTimes(
        seconds={role: tuple(sorted(of_runs[role].tolist())) for role in order_of_work(visits)},
        seeds=frozenset(int(seed) for seed in taught["seed"]),
    )
