"""How long each role takes, learned from the runs of a study: what an allocation of the budget is made from.

times = role_times(training.calls, training.runs)
LearnedPercentile(90, times.percentile_s(90))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from docmind_lab.analysis.visits import order_of_work, visits_of
from docmind_lab.core.errors import ConfigurationError


@dataclass(frozen=True)
class RoleTimes:
    """How long each role took in the runs that taught it.

    seconds: of each run in which the role was called, all its visits together; roles in the order of work.
    seeds: of the runs. Runs that are to judge an allocation have other ones, or it has seen their latencies before.
    """

    seconds: Mapping[str, tuple[float, ...]]
    seeds: frozenset[int]

    def __repr__(self) -> str:
        return f"RoleTimes: {self._described()}\n{self._shown().to_string(index=False)}"

    def _repr_html_(self) -> str:
        return f"<p>RoleTimes: {escape(self._described())}</p>{self._shown().to_html(index=False, border=0)}"

    def _described(self) -> str:
        seeds = f"seed {min(self.seeds)}" if len(self.seeds) == 1 else f"{len(self.seeds)} seeds"
        between = f", {min(self.seeds)} to {max(self.seeds)}" if len(self.seeds) > 1 else ""
        return f"learned from {seeds}{between}"

    def _shown(self) -> pd.DataFrame:
        """A row for each role: in how many runs it was called, and how long it took."""
        columns = {"mean (s)": self.mean_s(), "median (s)": self.percentile_s(50), "p90 (s)": self.percentile_s(90)}
        shown = {name: [f"{of_role[role]:.3f}" for role in self.seconds] for name, of_role in columns.items()}
        runs = [len(values) for values in self.seconds.values()]
        return pd.DataFrame({"role": list(self.seconds), "runs": runs, **shown})

    def mean_s(self) -> dict[str, float]:
        """Mean seconds of each role."""
        return {role: float(np.mean(values)) for role, values in self.seconds.items()}

    def percentile_s(self, percentile: float) -> dict[str, float]:
        """This percentile of each role's seconds. Raises: ConfigurationError for one out of (0, 100)."""
        if not 0 < percentile < 100:
            raise ConfigurationError(f"percentile must be above 0 and below 100, not {percentile!r}; try 90")
        return {role: float(np.percentile(values, percentile)) for role, values in self.seconds.items()}

    def require_other_seeds(self, judged: Iterable[int]) -> None:
        """Return if none of these seeds taught the times. Raises: ConfigurationError naming some that did."""
        known = sorted(self.seeds.intersection(int(seed) for seed in judged))
        if known:
            shown = ", ".join(str(seed) for seed in known[:5])
            raise ConfigurationError(
                f"seeds {shown} are among those the times were learned from, so these runs cannot judge them; "
                f"choose a study seed above {max(self.seeds)}"
            )


def role_times(calls: pd.DataFrame, runs: pd.DataFrame) -> RoleTimes:
    """What the unguarded runs of a training study say about its roles; its seeds must not be those that judge.

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
