"""Recommends the smallest decision timeout with a target share of runs answered in time, and its cost.

    result = recommend(study.runs, target=0.95)
    result                      # what to choose, the settings to paste, and a sentence for each arm
    result.frame, result.steps  # what was decided for each arm; every decision timeout that was looked at

The budgets of an arm are tested from the largest down, each at the full level, until one fails. No correction for many
tests is needed, since their order was fixed before anything was seen and the first failure ends it: W. Maurer,
L. A. Hothorn and W. Lehmacher, *Multiple comparisons in drug clinical trials and preclinical assays: a-priori ordered
hypotheses* (1995); P. H. Westfall and A. Krishen, *Optimally weighted, fixed sequence and gatekeeper multiple testing
procedures*, Journal of Statistical Planning and Inference 99 (2001).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.core.alternative_catalogue import Chooses, is_mistake, with_label
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import join_names, percent
from docmind_lab.findings.endings import endings_of, went_past_budget, with_endings
from docmind_lab.findings.finding import Block, Code, Finding, MakesFinding, after_interrupt
from docmind_lab.findings.recommendation_words import Chosen, choices_of, is_replay, sentences_of, shorter_in_words
from docmind_lab.statistics.interval import Interval
from docmind_lab.statistics.sample_size import TooFewRuns, gated_quantile, quantile_name
from docmind_lab.statistics.shares import is_share_below, runs_needed_for_share, share_interval
from docmind_lab.tables.conditions import varying, with_arms
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.tables.traces.traced_studies import traces_of_study

_QUANTILES: Final = (0.99, 0.95, 0.9)
# Nobody makes more of each arm; a share that needs them is as good as the target.
_MOST_RUNS: Final = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation(MakesFinding):
    """The recommended decision timeout of each arm, with the evidence.

    frame: one row per arm and condition (its decision timeouts apart): arm, alternative, the columns of the condition
    that vary; verdict (reached; too few runs: more of them at the observed share would reach it; not shown: the share
    observed is not above the target, and not surely below; below: surely below; out of reach: so many runs failed, were
    interrupted or were ended by a budget that no decision timeout reaches it; not known: as below, in a replay, whose
    shares are lower bounds; past its budget: the arm only measures a budget, and runs went past it), decision_timeout_s
    (the smallest that reached it, else the largest there was), runs, answered_in_time, share, low, high (Wilson,
    two-sided), runs_missing (0 when reached, NaN when no number of them would do at the observed share); never_answered
    (runs that failed or were interrupted whatever the timeout), may_be_time (runs that failed, and it is not known
    whether for lack of time), by_time (runs that were not in time for another reason), endings (what ended them, in
    words), reachable, reachable_low and reachable_high (the share that a decision timeout can have answered, Wilson);
    shorter (why no shorter decision timeout is recommended, in words; empty where none reached the target); what it
    costs there, means per run late_server_s and late_tokens (NaN without a server's log); caller_overrun_name (the
    highest quantile that the runs are enough for, or "worst") and caller_overrun_s (inf: not back by the horizon).
    steps: one row per arm, condition and decision timeout, in the order tested: the same share and bounds, tested
    (False below the first failure), reached, runs_to_settle (how many more runs would show on which side of the target
    the share is, if it held; NaN at the target itself).
    target, confidence: what was looked for, as `recommend` takes them.
    title: what is looked for, and among which decision timeouts. sentences: one for each row of `frame`, then the
    assumptions they rest on. choice: what to choose, for each condition. settings: the line that gives the system the
    choice; "" when nothing was chosen, or in several conditions. runs_needed: runs of each arm and decision timeout
    that would settle what is open; 0 where nothing is. is_sweep: whether a sweep made the runs. interrupted: how many
    of its runs are finished; empty where all are. arms: those to choose from; none where nothing was chosen, or in
    several conditions.
    """

    target: float
    confidence: float
    frame: pd.DataFrame
    steps: pd.DataFrame
    title: str
    sentences: tuple[str, ...]
    choice: tuple[str, ...]
    settings: str
    runs_needed: int = 0
    is_sweep: bool = True
    interrupted: str = ""
    arms: tuple[str, ...] = ()

    def how_to_settle(self, *, in_python: bool = True) -> str:
        """Return how the runs that would settle what is open are made; "" where nothing is.

        Args:
            in_python: Name Python's keywords; else the options of the command line.
        """
        if not self.runs_needed:
            return ""
        shell = f"docmind-lab compare --runs {self.runs_needed}, with the options of this study"
        python = f"dl.compare(runs={self.runs_needed}, …)"
        if self.is_sweep:
            shell = f"repeats = {self.runs_needed} in its file, then docmind-lab sweep STUDY.toml"
            python = f'dl.sweep({{**design, "repeats": {self.runs_needed}}})'
        return f"To settle what is open: {python if in_python else shell}."

    def finding(self, *, in_python: bool = True) -> Finding:
        """Return choice and settings, then the sentences. in_python: as of `how_to_settle`."""
        words: list[Block] = [
            after_interrupt(self.interrupted, self.choice[0]),
            *self.choice[1:],
            *([Code(self.settings, with_label(self.settings))] if self.settings else []),
        ]
        words += filter(None, [self.how_to_settle(in_python=in_python)])
        names = ("target", "confidence", "choice", "runs_needed", "settings", "sentences")
        numbers = {name: getattr(self, name) for name in names}
        return Finding((*words, f"{self.title}:", self.sentences), numbers, {"alternatives": self.frame})


def recommend(
    runs: pd.DataFrame,
    target: float = 0.95,
    confidence: float = 0.95,
    calls: pd.DataFrame | None = None,
    chosen_by: Chooses = "settings",
    is_sweep: bool = True,
) -> Recommendation:
    """Return, for each arm and condition, the smallest decision timeout that surely reaches the target share.

    Sure: the lower bound of the two-sided Wilson interval reaches the target. At 0.95 with no failure that takes 73
    runs (n / (n + 1.96²)). All runs count, whatever became of them.

    Args:
        runs: The `runs` table of a study with one or several decision timeouts. Negative controls and documented
            mistakes are left out: a deadline that nobody enforces keeps no promise.
        target: Share of runs answered in time.
        confidence: Confidence of the interval.
        calls: The `calls` table, to say whether the calls of a run at a live endpoint are slow together.
        chosen_by: By what the system is given the choice in production.
        is_sweep: Whether the runs are those of a sweep, which says how more of them are made; else of a comparison.

    Raises:
        ConfigurationError: The target or confidence is not between 0 and 1, or no arm enforces a deadline.
    """
    runs_needed_for_share(target, confidence)  # which refuses what is no share
    named = [*zip(runs["alternative"].astype("object"), runs["alternative_options"].astype("object"), strict=True)]
    mistakes = {each: is_mistake(*map(str, each)) for each in set(named)}
    enforcing = ~pd.Series([mistakes[each] for each in named], index=runs.index, dtype="bool")
    if not enforcing.any():
        raise ConfigurationError("runs has no arm that enforces a deadline: measure some alternative first")
    apart = [column for column in varying(runs) if column not in ("decision_timeout_s", "horizon_s")]
    frame = with_arms(with_endings(runs, apart)[enforcing])
    rows: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for values, group in frame.groupby([*apart, "arm"], observed=True, sort=True):
        where = dict(zip([*apart, "arm"], values, strict=True)) | {"alternative": str(group["alternative"].iloc[0])}
        tested = _steps(group, target, confidence)
        steps += [where | step for step in tested]
        rows.append(where | _decision(group, tested, target, confidence))
    decided = pd.DataFrame(rows)
    budgets = join_names([f"{value:g}" for value in sorted(runs["decision_timeout_s"].unique())], "or")
    chosen = list(choices_of(decided, runs, apart, chosen_by))
    only = chosen[0] if len(chosen) == 1 else Chosen("")
    return Recommendation(
        target,
        confidence,
        decided,
        pd.DataFrame(steps),
        title=f"The smallest decision timeout that has {percent(target)} answered in time, of {budgets} s",
        sentences=sentences_of(decided, runs, apart, target, confidence, calls),
        choice=tuple(each.words for each in chosen),
        settings=only.settings,
        runs_needed=_runs_needed(steps),
        is_sweep=is_sweep,
        arms=only.arms,
    )


def _runs_needed(steps: Sequence[Mapping[str, Any]]) -> int:
    """Return how many runs of each arm and timeout would settle every first failure that is open; 0 if none is."""
    needed = [
        step["runs"] + step["runs_to_settle"]
        for step in steps
        if step["tested"] and not step["reached"] and step["runs_to_settle"] > 0
    ]
    # NaN at the target itself fails the comparison above.
    return int(max((each for each in needed if each <= _MOST_RUNS), default=0))


def _steps(group: pd.DataFrame, target: float, confidence: float) -> list[dict[str, Any]]:
    """Return the decision timeouts of an arm from the largest down; `tested` until the first failure."""
    steps: list[dict[str, Any]] = []
    going_on = True
    for budget_s in sorted(group["decision_timeout_s"].unique(), reverse=True):
        of_budget = group[group["decision_timeout_s"] == budget_s]
        result = share_interval(int(of_budget["answered_in_time"].sum()), len(of_budget), confidence)
        reached = result.low >= target
        steps.append(
            {
                "decision_timeout_s": float(budget_s),
                "runs": len(of_budget),
                "answered_in_time": int(of_budget["answered_in_time"].sum()),
                "share": result.estimate,
                "low": result.low,
                "high": result.high,
                "tested": going_on,
                "reached": going_on and reached,
                "runs_to_settle": runs_to_settle(result.estimate, len(of_budget), target, confidence),
            }
        )
        going_on = going_on and reached
    return steps


def _decision(
    group: pd.DataFrame, steps: Sequence[Mapping[str, Any]], target: float, confidence: float
) -> dict[str, Any]:
    is_past = bool(went_past_budget(group).any())
    reached = [] if is_past else [step for step in steps if step["reached"]]
    step = reached[-1] if reached else steps[0]
    at_step = group[group["decision_timeout_s"] == step["decision_timeout_s"]]
    endings = endings_of(at_step)
    may_answer = len(at_step) - endings["never_answered"]
    reachable = share_interval(may_answer, len(at_step), confidence)
    missing = 0.0 if reached else step["runs_to_settle"] if step["share"] > target else math.nan
    if reached:
        verdict = "reached"
    elif is_past:
        verdict = "past its budget"
    elif endings["never_answered"] and is_share_below(may_answer, len(at_step), target, confidence):
        verdict = "out of reach"
    elif is_share_below(step["answered_in_time"], step["runs"], target, confidence):
        verdict = "not known" if is_replay(group) else "below"
    else:
        verdict = "not shown" if math.isnan(missing) else "too few runs"
    return {
        "verdict": verdict,
        **{name: step[name] for name in ("decision_timeout_s", "runs", "answered_in_time", "share", "low", "high")},
        "runs_missing": missing,
        **endings,
        "reachable": reachable.estimate,
        "reachable_low": reachable.low,
        "reachable_high": reachable.high,
        "shorter": shorter_in_words([each for each in steps if not each["reached"]], target, is_replay(group))
        if reached
        else "",
        **_costs(at_step),
    }


def runs_to_settle(share: float, runs: int, target: float, confidence: float = 0.95) -> float:
    """Return how many more runs would show on which side of the target a share is, if it held; NaN at the target.

    Wilson's bounds are where a score test of the share just fails, so one of them reaches the target when
    n = z² t (1 − t) / (p − t)², with p the observed share and t the target.
    """
    if share == target:
        return math.nan
    z = float(stats.norm.ppf(0.5 + confidence / 2))
    needed = max(runs, math.ceil(z * z * target * (1 - target) / (share - target) ** 2 - 1e-9))
    # So few runs do not show a share below the target, whatever Wilson's bound is: about as many as do.
    while share < target and not is_share_below(round(share * needed), needed, target, confidence):
        needed += max(1, needed // 50)
    return float(needed - runs)


def _costs(runs: pd.DataFrame) -> dict[str, Any]:
    overrun_s = runs["caller_overrun_s"].fillna(np.inf).to_numpy(dtype=np.float64)
    name, value = "worst", float(overrun_s.max())
    for quantile in _QUANTILES:
        result = gated_quantile(overrun_s, quantile)
        if not isinstance(result, TooFewRuns):
            name, value = quantile_name(quantile), result.estimate
            break
    return {
        "late_server_s": float(runs["busy_after_deadline_s"].mean(skipna=False)),
        "late_tokens": float(runs["tokens_after_deadline"].mean(skipna=False)),
        "caller_overrun_name": name,
        "caller_overrun_s": value,
    }


def final_call_s(source: Any, quantile: float = 0.9) -> Interval:
    """Return a quantile of the seconds that the last model call of each answered run took, with its interval.

    Args:
        source: A study with runs of the control, or traces. Runs that a deadline cut are no source: the long calls
            would be missing.
        quantile: Above 0 and below 1.

    Raises:
        ConfigurationError: There are too few answered runs, or the study has no runs of the control.
    """
    traces = source if isinstance(source, Traces) else traces_of_study(source)
    answered = traces.runs.loc[traces.runs["outcome"].astype("str") == "answered", "trace_id"]
    spans = traces.spans
    is_call = (spans["kind"].astype("str") == "llm") & (spans["outcome"].astype("str") == "ok")
    calls = spans[is_call & spans["trace_id"].isin(answered)].sort_values("ended_at_s", kind="stable")
    final = calls.groupby("trace_id", observed=True).tail(1)
    interval = gated_quantile(final["ended_at_s"] - final["started_at_s"], quantile)
    if isinstance(interval, TooFewRuns):
        raise ConfigurationError(f"the final model call: {interval.text()}; measure more, or give reserve_s in seconds")
    return interval
