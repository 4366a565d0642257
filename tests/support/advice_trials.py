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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from docmind_lab.findings.choice import choose
from docmind_lab.findings.criteria import CRITERIA, Criterion
from docmind_lab.findings.diff import diff
from docmind_lab.findings.recommendation import recommend
from docmind_lab.findings.study import Study
from docmind_lab.statistics.means import skewed_paired_interval
from docmind_lab.tables.conditions import with_arms

POOLS = Path(__file__).parents[1] / "calibration"
MANIFEST = {"schema_version": 3, "study_id": "pool", "design": {"seed": 0}}


@dataclass(frozen=True)
class Advice:
    """One kind of advice, and trials of it.

    Attributes:
        name: The kind, in words.
        promise: What following it should give.
        claim: The least share of advice given that keeps the promise.
        trial: Takes the number of a repetition, and returns whether the promise was kept in it; None where the lab said
            that it cannot tell, or gave no such advice.
    """

    name: str
    promise: str
    claim: float
    trial: Callable[[int], bool | None]


@dataclass(frozen=True)
class Calibration:
    """What became of one kind of advice: repetitions in which it was given, was kept, and in which there was none."""

    advice: Advice
    given: int
    kept: int
    silent: int

    @classmethod
    def over(cls, repetitions: int, advice: Advice) -> Calibration:
        """Try the advice so many times."""
        results = [advice.trial(number) for number in range(repetitions)]
        kept = [result for result in results if result is not None]
        return cls(advice, len(kept), sum(kept), len(results) - len(kept))

    @property
    def is_within_claim(self) -> bool:
        """Whether so many broken promises are within chance of the claim (binomial, 1 in 1,000)."""
        from scipy import stats

        return bool(stats.binom.cdf(self.kept, self.given, self.advice.claim) > 0.001)

    def row(self) -> str:
        """A row of the table in docs/studies.md."""
        share = f"{self.kept / self.given:.1%}" if self.given else "–"
        advice = self.advice
        return f"| {advice.name} | {advice.promise} | {advice.claim:.0%} | {self.given} | {share} | {self.silent} |"


HEADER = (
    "| advice | what following it gives | claim | times given | kept | cannot tell |\n|---|---|---:|---:|---:|---:|"
)


def pool(name: str = "pool") -> pd.DataFrame:
    """The runs of a pool. original_seed: the seed with which a run was measured."""
    from docmind_lab.tables.frames import with_dtypes

    runs = with_dtypes("runs", pd.read_parquet(POOLS / f"{name}.parquet"))
    return runs.assign(original_seed=runs["seed"])


def drawn(runs: pd.DataFrame, rng: np.random.Generator, count: int) -> pd.DataFrame:
    """Runs of so many seeds, drawn with replacement and numbered anew, so that a seed drawn twice is two seeds."""
    seeds = rng.choice(runs["seed"].unique(), count)
    order = pd.DataFrame({"seed": seeds, "number": np.arange(count)})
    found = order.merge(runs, on="seed", how="left")
    return found.assign(seed=found["number"], question_id=found["number"].astype("str")).drop(columns="number")


def choices(runs: pd.DataFrame, count: int = 40, seed: int = 1) -> Advice:
    """Alternatives that are not chosen because another one does better: it does, by more than what does not matter."""
    truth, rng = means_of(runs), np.random.default_rng(seed)

    def trial(_: int) -> bool | None:
        beaten = choose(drawn(runs, rng, count)).beaten
        if not beaten:
            return None
        return all(truly_worse_by(truth, arm, by.by, by.criterion) > by.criterion.margin for arm, by in beaten.items())

    promise = "each alternative that is beaten is truly worse"
    return Advice(f"choice, {_faults(runs)}", promise, 0.95, trial)


def bests(runs: pd.DataFrame, count: int = 40, seed: int = 2) -> Advice:
    """The alternative that is truly best is among the chosen."""
    truth, rng = means_of(runs), np.random.default_rng(seed)
    refused = set(choose(runs).refused)
    best = _best(truth, [arm for arm in truth.index if arm not in refused])

    def trial(_: int) -> bool:
        return bool(best & set(choose(drawn(runs, rng, count)).chosen))

    return Advice(f"choice, {_faults(runs)}", "a truly best alternative is among the chosen", 0.95, trial)


def timeouts(runs: pd.DataFrame, target: float = 0.9, count: int = 150, seed: int = 4) -> Advice:
    """The recommended decision timeout truly has the target answered in time."""
    rng = np.random.default_rng(seed)
    arm = runs[runs["alternative"].astype("str") == "cooperative"]
    needed_s = _time_needed(runs)
    levels_s = np.quantile(needed_s, [0.8, 0.88, 0.9, 0.92, 0.95, 0.98])

    def trial(_: int) -> bool | None:
        at = [_under(drawn(arm, rng, count), needed_s, level_s) for level_s in levels_s]
        found = recommend(pd.concat(at, ignore_index=True), target).frame.iloc[0]
        if found["verdict"] != "reached":
            return None
        return bool((needed_s <= found["decision_timeout_s"]).mean() >= target)

    advice = "recommended timeout, no more runs needed"
    return Advice(advice, f"{target:.0%} are answered in time", 0.95, trial)


def _under(runs: pd.DataFrame, needed_s: pd.Series, level_s: float) -> pd.DataFrame:
    in_time = (runs["original_seed"].map(needed_s) <= level_s).to_numpy()
    return runs.assign(
        decision_timeout_s=float(level_s),
        horizon_s=5 * float(level_s),
        answered_in_time=in_time,
        outcome=np.where(in_time, "answered", "partial"),
    )


def false_regressions(runs: pd.DataFrame, count: int = 20, seed: int = 6) -> Advice:
    """Two studies of one truth with other seeds: no regression is found."""
    rng = np.random.default_rng(seed)
    some = runs[runs["alternative"].astype("str").isin(["cooperative", "hard_timeout"])]

    def trial(_: int) -> bool:
        return not diff(_study(drawn(some, rng, count)), _study(drawn(some, rng, count))).regressed

    return Advice("diff between equals", "no regression is claimed", 0.95, trial)


def falls(runs: pd.DataFrame, count: int = 40, seed: int = 7) -> Advice:
    """Where no regression is shown, answers fell by no more than is named."""
    rng = np.random.default_rng(seed)
    arm = runs[runs["alternative"].astype("str") == "cooperative"]

    def trial(number: int) -> bool | None:
        before = drawn(arm, rng, count)
        # Answers are truly lost: none, 5 or 10 of a hundred, one after the other.
        loss = (0.0, 0.05, 0.1)[number % 3]
        lost = (rng.random(count) < loss) & before["answered_in_time"].to_numpy()
        after = before.assign(answered_in_time=before["answered_in_time"].to_numpy() & ~lost)
        found = diff(_study(before), _study(after))
        named = re.search(r"fell by at most ([\d.]+)", found.verdict_text)
        if found.verdict != "no regression shown" or not named:
            return None
        return loss * float(arm["answered_in_time"].mean()) <= float(named[1]) + 0.005  # as it is rounded

    promise = "answers fell by no more than it names"
    return Advice('diff: "no regression shown"', promise, 0.95, trial)


def regressions(runs: pd.DataFrame, count: int = 20, seed: int = 8) -> Advice:
    """Six of ten answers lost: that is found."""
    rng = np.random.default_rng(seed)
    arm = runs[runs["alternative"].astype("str") == "cooperative"]

    def trial(_: int) -> bool:
        before = drawn(arm, rng, count).assign(answered_in_time=True)
        after = before.assign(answered_in_time=rng.random(count) < 0.4)
        return diff(_study(before), _study(after)).regressed

    advice = "diff after six of ten answers are lost"
    return Advice(advice, "a regression is claimed", 0.9, trial)


LIMITS: dict[str, Callable[[np.random.Generator, int, float, float], np.ndarray]] = {
    "all runs cut at one limit": lambda rng, count, limit_s, most_s: np.full(count, limit_s),
    "limits spread evenly": lambda rng, count, limit_s, most_s: rng.uniform(0.0, most_s, count),
    "three of four runs cut": lambda rng, count, limit_s, most_s: np.where(rng.random(count) < 0.75, limit_s, most_s),
    "one run in ten watched longer": lambda rng, count, limit_s, most_s: np.where(
        rng.random(count) < 0.9, limit_s, most_s
    ),
}
"""How long each run is watched. Taken: a generator, the number of runs, a limit that half exceed, one that few do."""


def what_ifs(kind: str, count: int = 100, seed: int = 9) -> Advice:
    """The interval of a what-if has the true share in time, where runs were cut as `kind` says."""
    from docmind_lab.findings.what_if.shares_in_time import in_time_shares
    from docmind_lab.tables.traces.trace_tables import TracedRun, Traces

    rng = np.random.default_rng(seed)
    needed_s = _time_needed(pool()).to_numpy(dtype="float64")
    limit_s, most_s = np.quantile(needed_s, 0.5), np.quantile(needed_s, 0.97)

    def trial(number: int) -> bool | None:
        timeout_s = float(np.quantile(needed_s, (0.5, 0.6, 0.7, 0.8, 0.9)[number % 5]))
        drawn_s, limits_s = rng.choice(needed_s, count), LIMITS[kind](rng, count, limit_s, most_s)
        traced = [
            TracedRun(str(place), str(place), "pool", *((need_s, need_s, "answered") if need_s <= watched_s else cut))
            for place, (need_s, watched_s) in enumerate(zip(drawn_s, limits_s, strict=True))
            for cut in [(math.nan, watched_s, "cut")]
        ]
        (row,) = in_time_shares(Traces.of(traced, []), np.array([timeout_s]), 0.95).to_dict("records")
        if math.isnan(row["share"]):
            return None
        return bool(row["low"] <= (needed_s <= timeout_s).mean() <= row["high"])

    return Advice(f"what-if, {kind}", "the share in time is in the interval", 0.95, trial)


SIX = ("cooperative", "hard_timeout", "async_cancellation", "stop_flag", "hybrid", "native")


def _arms_alike(alternatives: Sequence[str], count: int) -> pd.DataFrame:
    from sample_runs import sample_run
    from sample_runs import study_of as made_up

    one_of_each = made_up([sample_run(arm, 0, horizon_s=100.0) for arm in alternatives]).runs
    runs = one_of_each.loc[one_of_each.index.repeat(count)].reset_index(drop=True)
    return runs.assign(seed=np.tile(np.arange(count), len(alternatives)))


def _failing(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    failed = rng.random(len(runs)) < 0.3
    outcome = runs["outcome"].astype("str").where(~failed, "failed")
    return runs.assign(outcome=outcome, answered_in_time=~failed, source_recall=np.where(failed, 0.0, 1.0))


def _skewed_seconds(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return runs.assign(busy_after_deadline_s=_skewed(rng, len(runs)))


def _skewed(rng: np.random.Generator, count: int) -> np.ndarray:
    """Gamma distributed seconds with a skewness of 3 and a mean of 1.8 s."""
    return rng.gamma(4 / 9, 4.0, count)


def _all_noise(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    count = len(runs)
    noise = {"work_overrun_s": _skewed(rng, count), "source_recall": rng.binomial(4, 0.6, count) / 4}
    return _skewed_seconds(_failing(runs, rng), rng).assign(**noise)


NULLS = {"failures": _failing, "seconds of skewness 3": _skewed_seconds, "every measure": _all_noise}


def equal_arms(what: str, count: int = 40, seed: int = 9) -> Advice:
    """Six arms that are truly alike, but for noise in what is named: none is beaten."""
    rng, arms = np.random.default_rng(seed), _arms_alike(SIX, count)

    def trial(_: int) -> bool:
        return not choose(NULLS[what](arms, rng)).beaten

    return Advice(f"choice, six equal alternatives, noise in {what}", "none is beaten", 0.95, trial)


def rare_costs(
    count: int = 40, seed: int = 10, share: float = 0.03, cost_s: float = 60.0, steady_s: float = 1.0
) -> Advice:
    """Half a second to 1.5 s in every run beats 60 s in three runs of a hundred; these runs mostly miss the latter."""
    rng, runs = np.random.default_rng(seed), _arms_alike(SIX[:2], count)
    steady = (runs["alternative"].astype("str") == SIX[0]).to_numpy()

    def trial(_: int) -> bool:
        rare = cost_s * (rng.random(len(runs)) < share)
        late_s = np.where(steady, steady_s * rng.uniform(0.5, 1.5, len(runs)), rare)
        return "A  cooperative" not in choose(runs.assign(busy_after_deadline_s=late_s)).beaten

    return Advice("choice, beside a rare cost", "the truly better is not beaten", 0.95, trial)


def dominance(count: int = 14, seed: int = 11) -> Advice:
    """Work goes on under one arm in nine of fourteen runs, as it does without a deadline; in none of the other arm."""
    rng, runs = np.random.default_rng(seed), _arms_alike(("unguarded", *SIX[:2]), count)
    alternatives = runs["alternative"].astype("str")

    def trial(_: int) -> bool:
        work_s = np.zeros(count)
        work_s[rng.permutation(count)[:9]] = rng.gamma(4.0, 2.5, 9)
        left_s = np.where(alternatives == SIX[0], 0.0, work_s[runs["seed"].to_numpy()])
        return "B  hard timeout" in choose(runs.assign(busy_after_deadline_s=left_s)).beaten

    advice = "choice, worse in 9 of 14 runs and never better"
    return Advice(advice, "it is beaten", 0.8, trial)


def printed_seconds(count: int = 14, seed: int = 12) -> Advice:
    """The interval of a difference in seconds, of arms of skewness 2 and 3 with zeros among them, holds the truth."""
    rng = np.random.default_rng(seed)

    def trial(number: int) -> bool:
        shape = (1.0, 4 / 9)[number % 2]
        some = (1.0, 0.6)[number // 2 % 2]
        differences = rng.gamma(shape, 4.0, count) * (rng.random(count) < some)
        interval = skewed_paired_interval(differences, float(np.ptp(differences)), 0.95)
        return interval.low <= 4.0 * shape * some <= interval.high

    advice = f"difference in seconds, {count} pairs, skewness 2 to 3"
    return Advice(advice, "its interval holds the truth", 0.93, trial)


def more_runs(count: int = 40, seed: int = 3, truth: float = 0.06) -> Advice:
    """So many more runs, where the difference of source recall is near what was seen, do settle it."""
    rng = np.random.default_rng(seed)

    def trial(_: int) -> bool | None:
        better_by = rng.normal(truth, 0.2, 440)
        found = choose(_recalls(better_by[:count]))
        near = [each for each in found.undecided if abs(each.better_by.estimate - truth) < truth / 6]
        if not near or not near[0].more_runs < 400:
            return None
        return not choose(_recalls(better_by[: count + int(near[0].more_runs)])).undecided

    promise = "they do, where the truth is near what was seen"
    return Advice('"N more runs would settle it"', promise, 0.6, trial)


def _recalls(better_by: np.ndarray) -> pd.DataFrame:
    runs = _arms_alike(SIX[:2], len(better_by))
    first = (runs["alternative"].astype("str") == SIX[0]).to_numpy()
    return runs.assign(source_recall=0.5 + np.where(first, better_by[runs["seed"].to_numpy()], 0.0))


def _faults(runs: pd.DataFrame) -> str:
    fault = str(runs["fault"].iloc[0])
    return "no fault" if fault == "none" else f"fault {fault}"


def _study(runs: pd.DataFrame) -> Study:
    from sample_runs import concatenated

    from docmind_lab.tables.frames import to_frame

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


REFUSING = "pool_rate_limit"
KINDS: dict[str, Callable[[], Advice]] = {
    "choices": lambda: choices(pool()),
    "choices under refusals": lambda: choices(pool(REFUSING)),
    "bests": lambda: bests(pool()),
    "bests under refusals": lambda: bests(pool(REFUSING)),
    "timeouts": lambda: timeouts(pool()),
    "false regressions": lambda: false_regressions(pool()),
    "falls": lambda: falls(pool()),
    "regressions": lambda: regressions(pool()),
    **{f"what-if, {kind}": functools.partial(what_ifs, kind) for kind in LIMITS},
    **{f"equal arms, {what}": functools.partial(equal_arms, what) for what in NULLS},
    "rare costs": rare_costs,
    "more runs": more_runs,
    "dominance": dominance,
    "seconds of 14 pairs": printed_seconds,
    "seconds of 40 pairs": functools.partial(printed_seconds, 40),
}


if __name__ == "__main__":
    print(HEADER)
    for kind in KINDS:
        print(Calibration.over(200, KINDS[kind]()).row(), flush=True)
