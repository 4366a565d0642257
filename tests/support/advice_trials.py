"""How often following the lab's advice gives what it promised, with known truth.

    python tests/support/advice_trials.py        # the table of docs/studies.md: 200 repetitions of each kind

The truth is a pool of measured runs in tests/calibration: `pool.parquet` holds runs of every alternative over the same
seeds, and `pool_rate_limit.parquet` the same under a server that refuses. A repetition draws seeds from a pool, asks
for advice, and compares it with what the whole pool says. The advice was not tuned on these pools.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from docmind_lab.analysis.conditions import with_arms
from docmind_lab.analysis.diff import diff
from docmind_lab.analysis.findings.choice import CRITERIA, Choice, Criterion, choose
from docmind_lab.analysis.findings.recommendation import recommend
from docmind_lab.analysis.findings.second_budgets import budget_sufficiency
from docmind_lab.analysis.study import Study

POOLS = Path(__file__).parents[1] / "calibration"
MANIFEST = {"schema_version": 3, "study_id": "pool", "design": {"seed": 0}}


@dataclass(frozen=True)
class Calibration:
    """What became of one kind of advice.

    Attributes:
        advice: The kind, in words.
        promise: What following it should give.
        claim: The least share of advice given that keeps the promise.
        given: Repetitions in which there was such advice.
        kept: Of those, in which it held.
        silent: Repetitions in which the lab said that it cannot tell, or gave no such advice.
    """

    advice: str
    promise: str
    claim: float
    given: int
    kept: int
    silent: int

    @property
    def share(self) -> float:
        """The share of advice given that kept its promise; NaN where none was given."""
        return self.kept / self.given if self.given else math.nan

    @property
    def is_within_claim(self) -> bool:
        """Whether so many broken promises are within chance of the claim (binomial, 1 in 1,000)."""
        from scipy import stats

        return bool(stats.binom.cdf(self.kept, self.given, self.claim) > 0.001)

    def row(self) -> str:
        """A row of the table in docs/studies.md."""
        share = f"{self.share:.1%}" if self.given else "–"
        return f"| {self.advice} | {self.promise} | {self.claim:.0%} | {self.given} | {share} | {self.silent} |"


HEADER = (
    "| advice | what following it gives | claim | times given | kept | cannot tell |\n|---|---|---:|---:|---:|---:|"
)


def pool(name: str = "pool") -> pd.DataFrame:
    """The runs of a pool."""
    from docmind_lab.analysis.tables.frames import with_dtypes

    return with_dtypes("runs", pd.read_parquet(POOLS / f"{name}.parquet"))


def drawn(runs: pd.DataFrame, rng: np.random.Generator, count: int) -> pd.DataFrame:
    """Runs of so many seeds, drawn with replacement and numbered anew, so that a seed drawn twice is two seeds."""
    seeds = rng.choice(runs["seed"].unique(), count)
    order = pd.DataFrame({"seed": seeds, "number": np.arange(count)})
    found = order.merge(runs, on="seed", how="left")
    return found.assign(seed=found["number"], question_id=found["number"].astype("str")).drop(columns="number")


def choices(repetitions: int, runs: pd.DataFrame, count: int = 40, seed: int = 1) -> Calibration:
    """Alternatives that are not chosen because another one does better: it does, by more than what does not matter."""
    truth, rng, kept, given = means_of(runs), np.random.default_rng(seed), 0, 0
    for _ in range(repetitions):
        found = choose(drawn(runs, rng, count))
        if found.beaten:
            given += 1
            kept += all(
                truly_worse_by(truth, arm, by.by, by.criterion) > by.criterion.margin
                for arm, by in found.beaten.items()
            )
    return Calibration(
        f"choice, {_faults(runs)}",
        "each alternative that is beaten is truly worse",
        0.95,
        given,
        kept,
        repetitions - given,
    )


def bests(repetitions: int, runs: pd.DataFrame, count: int = 40, seed: int = 2) -> Calibration:
    """The alternative that is truly best is among the chosen."""
    truth, rng, kept = means_of(runs), np.random.default_rng(seed), 0
    refused = set(choose(runs).refused)
    best = _best(truth, [arm for arm in truth.index if arm not in refused])
    for _ in range(repetitions):
        kept += bool(best & set(choose(drawn(runs, rng, count)).chosen))
    return Calibration(
        f"choice, {_faults(runs)}", "a truly best alternative is among the chosen", 0.95, repetitions, kept, 0
    )


def more_runs(repetitions: int, runs: pd.DataFrame, count: int = 15, seed: int = 3) -> Calibration:
    """So many more runs, where the difference is near what was seen, do settle it."""
    truth, rng, kept, given = means_of(runs), np.random.default_rng(seed), 0, 0
    for _ in range(repetitions):
        found: Choice = choose(drawn(runs, rng, count))
        near = [
            each
            for each in found.undecided
            if math.isfinite(each.more_runs)
            and each.more_runs < 1500
            and abs(truly_worse_by(truth, each.second, each.first, each.criterion) - each.better_by.estimate)
            < abs(each.better_by.estimate - each.criterion.margin) / 4
        ]
        if not near:
            continue
        given += 1
        open_before = near[0]
        again = choose(drawn(runs, rng, count + int(open_before.more_runs)))
        kept += not any(
            {each.first, each.second} == {open_before.first, open_before.second}
            and each.criterion.name == open_before.criterion.name
            for each in again.undecided
        )
    return Calibration(
        '"N more runs would settle it"',
        "they do, where the truth is near what was seen",
        0.6,
        given,
        kept,
        repetitions - given,
    )


def timeouts(repetitions: int, runs: pd.DataFrame, target: float = 0.9, count: int = 150, seed: int = 4) -> Calibration:
    """The recommended decision timeout truly has the target answered in time."""
    rng, kept, given = np.random.default_rng(seed), 0, 0
    arm = runs[runs["alternative"].astype("str") == "cooperative"]
    needed_s = _time_needed(runs)
    levels_s = np.quantile(needed_s, [0.8, 0.88, 0.9, 0.92, 0.95, 0.98])
    for _ in range(repetitions):
        at = [_under(drawn(arm, rng, count), needed_s, level_s) for level_s in levels_s]
        found = recommend(pd.concat(at, ignore_index=True), target).frame.iloc[0]
        if found["verdict"] == "reached":
            given += 1
            kept += bool((needed_s <= found["decision_timeout_s"]).mean() >= target)
    return Calibration(
        "recommended timeout, no more runs needed",
        f"{target:.0%} are answered in time",
        0.95,
        given,
        kept,
        repetitions - given,
    )


def _under(runs: pd.DataFrame, needed_s: pd.Series, level_s: float) -> pd.DataFrame:
    in_time = (runs["original_seed"].map(needed_s) <= level_s).to_numpy()
    return runs.assign(
        decision_timeout_s=float(level_s),
        horizon_s=5 * float(level_s),
        answered_in_time=in_time,
        outcome=np.where(in_time, "answered", "partial"),
    )


def budgets(repetitions: int, runs: pd.DataFrame, count: int = 100, seed: int = 5) -> Calibration:
    """Of the limit that ended no run, at most the share that is named would be ended."""
    rng, kept, given = np.random.default_rng(seed), 0, 0
    arm = runs[runs["alternative"].astype("str") == "cooperative"]
    used = runs[runs["alternative"].astype("str") == "unguarded"].set_index("seed")["llm_calls"].astype("float64")
    limits = np.unique(np.quantile(used, [0.5, 0.9, 0.97, 0.99, 1.0]))
    for _ in range(repetitions):
        at = []
        for limit in limits:
            one = drawn(arm, rng, count)
            ended = (one["original_seed"].map(used) > limit).to_numpy()
            at.append(
                one.assign(
                    second_budgets=f"{limit:g} calls",
                    call_budget=float(limit),
                    deadline_propagation=True,
                    stop_reason=np.where(ended, "call_budget", ""),
                )
            )
        (sentence,) = budget_sufficiency(pd.concat(at, ignore_index=True))
        said = re.search(r"([\d,]+) calls is the smallest limit tried that ended none .*at most ([\d.]+)%", sentence)
        if said:
            given += 1
            kept += bool((used > float(said[1].replace(",", ""))).mean() <= float(said[2]) / 100)
    return Calibration(
        "sufficient second budget", "at most the named share of runs is ended", 0.95, given, kept, repetitions - given
    )


def false_regressions(repetitions: int, runs: pd.DataFrame, count: int = 20, seed: int = 6) -> Calibration:
    """Two studies of one truth with other seeds: no regression is found."""
    rng, kept = np.random.default_rng(seed), 0
    some = runs[runs["alternative"].astype("str").isin(["cooperative", "hard_timeout"])]
    for _ in range(repetitions):
        kept += not diff(_study(drawn(some, rng, count)), _study(drawn(some, rng, count))).regressed
    return Calibration("diff between equals", "no regression is claimed", 0.95, repetitions, kept, 0)


def falls(repetitions: int, runs: pd.DataFrame, count: int = 40, seed: int = 7) -> Calibration:
    """Where no regression is shown, answers fell by no more than is named."""
    rng, kept, given = np.random.default_rng(seed), 0, 0
    arm = runs[runs["alternative"].astype("str") == "cooperative"]
    for number in range(repetitions):
        before = drawn(arm, rng, count)
        # Answers are truly lost: none, 5 or 10 of a hundred, one after the other.
        loss = (0.0, 0.05, 0.1)[number % 3]
        lost = (rng.random(count) < loss) & before["answered_in_time"].to_numpy()
        after = before.assign(answered_in_time=before["answered_in_time"].to_numpy() & ~lost)
        found = diff(_study(before), _study(after))
        said = re.search(r"fell by at most ([\d.]+)", found.verdict_text)
        if found.verdict == "no regression shown" and said:
            given += 1
            kept += loss * float(arm["answered_in_time"].mean()) <= float(said[1]) + 0.005  # as it is rounded
    return Calibration(
        'diff: "no regression shown"', "answers fell by no more than it names", 0.95, given, kept, repetitions - given
    )


def regressions(repetitions: int, runs: pd.DataFrame, count: int = 20, seed: int = 8) -> Calibration:
    """Six of ten answers lost: that is found."""
    rng, kept = np.random.default_rng(seed), 0
    arm = runs[runs["alternative"].astype("str") == "cooperative"]
    for _ in range(repetitions):
        before = drawn(arm, rng, count).assign(answered_in_time=True)
        after = before.assign(answered_in_time=rng.random(count) < 0.4)
        kept += diff(_study(before), _study(after)).regressed
    return Calibration("diff after six of ten answers are lost", "a regression is claimed", 0.9, repetitions, kept, 0)


LIMITS: dict[str, Callable[[np.random.Generator, int, float, float], np.ndarray]] = {
    "all runs cut at one limit": lambda rng, count, limit_s, most_s: np.full(count, limit_s),
    "limits spread evenly": lambda rng, count, limit_s, most_s: rng.uniform(0.0, most_s, count),
    "three of four runs cut": lambda rng, count, limit_s, most_s: np.where(rng.random(count) < 0.75, limit_s, most_s),
    "one run in ten watched longer": lambda rng, count, limit_s, most_s: np.where(
        rng.random(count) < 0.9, limit_s, most_s
    ),
}
"""How long each run is watched. Taken: a generator, the number of runs, a limit that half exceed, one that few do."""


def what_ifs(repetitions: int, runs: pd.DataFrame, kind: str, count: int = 100, seed: int = 9) -> Calibration:
    """The interval of a what-if has the true share in time, where runs were cut as `kind` says."""
    from docmind_lab.analysis.traces.model import TracedRun, Traces
    from docmind_lab.analysis.traces.shares import in_time_shares

    rng, kept, given = np.random.default_rng(seed), 0, 0
    needed_s = _time_needed(runs).to_numpy(dtype="float64")
    limit_s, most_s = np.quantile(needed_s, 0.5), np.quantile(needed_s, 0.97)
    for number in range(repetitions):
        timeout_s = float(np.quantile(needed_s, (0.5, 0.6, 0.7, 0.8, 0.9)[number % 5]))
        drawn_s, limits_s = rng.choice(needed_s, count), LIMITS[kind](rng, count, limit_s, most_s)
        traced = [
            TracedRun(str(place), str(place), "pool", *((need_s, need_s, "answered") if need_s <= watched_s else cut))
            for place, (need_s, watched_s) in enumerate(zip(drawn_s, limits_s, strict=True))
            for cut in [(math.nan, watched_s, "cut")]
        ]
        (row,) = in_time_shares(Traces.of(traced, []), np.array([timeout_s]), 0.95).to_dict("records")
        if not math.isnan(row["share"]):
            given += 1
            kept += bool(row["low"] <= (needed_s <= timeout_s).mean() <= row["high"])
    return Calibration(
        f"what-if, {kind}", "the share in time is in the interval", 0.95, given, kept, repetitions - given
    )


def _faults(runs: pd.DataFrame) -> str:
    fault = str(runs["fault"].iloc[0])
    return "no fault" if fault == "none" else f"fault {fault}"


def _study(runs: pd.DataFrame) -> Study:
    from sample_runs import concatenated

    from docmind_lab.analysis.tables.frames import to_frame

    return Study(concatenated("runs", [runs]), to_frame("calls", []), to_frame("events", []), MANIFEST)


def _time_needed(runs: pd.DataFrame) -> pd.Series:
    control = runs[runs["alternative"].astype("str") == "unguarded"].set_index("seed")
    return control["returned_at_s"].fillna(math.inf)


def means_of(runs: pd.DataFrame) -> pd.DataFrame:
    """What the whole pool says of each arm and measure."""
    groups = with_arms(runs).groupby("arm", observed=True)
    rows = {str(arm): {each.name: float(each.values(group).mean()) for each in CRITERIA} for arm, group in groups}
    return pd.DataFrame.from_dict(rows, orient="index")


def truly_worse_by(truth: pd.DataFrame, arm: str, than: str, criterion: Criterion) -> float:
    column = truth[criterion.name]
    return criterion.better * float(column[than] - column[arm])


def _best(truth: pd.DataFrame, arms: list[str]) -> set[str]:
    """The arms that are best by the rule of the choice, with the truth in place of estimates."""
    for criterion in CRITERIA:
        values = truth.loc[arms, criterion.name] * criterion.better
        if not values.isna().any():
            arms = [arm for arm in arms if values[arm] >= values.max() - criterion.margin]
    return set(arms)


Trial = Callable[[int, pd.DataFrame], Calibration]
TRIALS: dict[str, tuple[Trial, str]] = {
    "choices": (choices, "pool"),
    "choices under refusals": (choices, "pool_rate_limit"),
    "bests": (bests, "pool"),
    "bests under refusals": (bests, "pool_rate_limit"),
    "more runs": (more_runs, "pool"),
    "timeouts": (timeouts, "pool"),
    "budgets": (budgets, "pool"),
    "false regressions": (false_regressions, "pool"),
    "falls": (falls, "pool"),
    "regressions": (regressions, "pool"),
}
TRIALS |= {f"what-if, {kind}": (functools.partial(what_ifs, kind=kind), "pool") for kind in LIMITS}


def calibrated(repetitions: int) -> Iterator[Calibration]:
    """Every kind of advice, over so many repetitions."""
    for trial, name in TRIALS.values():
        runs = pool(name)
        yield trial(repetitions, runs.assign(original_seed=runs["seed"]))


if __name__ == "__main__":
    print(HEADER)
    for found in calibrated(200):
        print(found.row(), flush=True)
