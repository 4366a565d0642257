"""A recommendation in sentences: one for each arm, the assumptions about latencies, the choice and its settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd

from docmind_lab.core.alternative_catalogue import CATALOGUE, Chooses, choice_to_paste
from docmind_lab.core.levels import RECORDED
from docmind_lab.core.text import count_of, duration, join_names, one_line, percent
from docmind_lab.findings.choice import choose
from docmind_lab.findings.endings import budget_notes
from docmind_lab.statistics.latency.dependence import base_name, correlation_in, without_correlation
from docmind_lab.statistics.latency.sessions import fit_correlation
from docmind_lab.statistics.shares import runs_needed_for_share
from docmind_lab.tables.conditions import in_words, with_arms
from docmind_lab.tables.frames import rows_of

LOWER_BOUND: Final = (
    "drew a length beyond what the recording could observe and never end, so shares answered in time are lower bounds, "
    "and overruns and late work may be shorter in truth: record with a longer deadline to know"
)
"""The end of a sentence on how calls drawn beyond the observed ones bias a replay."""


def is_replay(runs: pd.DataFrame) -> bool:
    """Whether any of the runs replays a recording, whose shares answered in time are lower bounds."""
    return bool((runs["latency_profile"].astype("str") == RECORDED).any())


def _assumptions(
    runs: pd.DataFrame, decided: pd.DataFrame, apart: Sequence[str], calls: pd.DataFrame | None
) -> Iterator[str]:
    yield from budget_notes(runs)
    live = runs.loc[runs["latency_profile"].astype("str") == "", "run_id"]
    if calls is not None and len(live):
        yield from _live_correlation(calls[calls["run_id"].isin(set(live))])
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


def _live_correlation(calls: pd.DataFrame) -> Iterator[str]:
    """Yield whether the calls of a run at a live endpoint are slow together, if there are enough runs."""
    of_client = calls[(calls["seen_from"].astype("str") == "client") & (calls["outcome"].astype("str") == "ok")]
    part = of_client["role"].astype("str") + " " + of_client["kind"].astype("str")
    columns = {"session": of_client["run_id"].astype("str"), "part": part, "seconds": of_client["latency_s"]}
    result = fit_correlation(pd.DataFrame(columns))
    yield (
        ("Too few runs to tell whether the calls of a run are slow together." if result is None else result.in_words())
        + " A session is a run. What a run's calls share is in these shares; what runs of one hour share is not, so "
        "measure at the hours that matter."
    )


def _ranges(decided: pd.DataFrame, others: Sequence[str]) -> Iterator[str]:
    """Yield the range of each arm's advice over the correlations of its runs. others: columns of its condition."""
    profiles = decided["latency_profile"].astype("str")
    rows = decided.assign(correlation=profiles.map(correlation_in), profile=profiles.map(without_correlation))
    for values, group in rows.groupby(["arm", "profile", *others], observed=True, sort=True):
        arm, *where = (str(value) for value in values)
        reached = group[group["verdict"] == "reached"].sort_values("correlation")
        failed = sorted(set(group["correlation"]) - set(reached["correlation"]))
        result = [
            f"{timeout_s:g} s at {correlation:g}"
            for correlation, timeout_s in zip(reached["correlation"], reached["decision_timeout_s"], strict=True)
        ]
        result += [f"none of these at {correlation:g}" for correlation in failed]
        yield f"{one_line(arm)} ({', '.join(where)}) over the correlation of the calls of a run: {join_names(result)}."


def sentences_of(
    frame: pd.DataFrame,
    runs: pd.DataFrame,
    apart: Sequence[str],
    target: float,
    confidence: float,
    calls: pd.DataFrame | None,
) -> tuple[str, ...]:
    """Return a sentence for each arm and condition of a `Recommendation.frame`, then the assumptions they rest on.

    apart: columns that tell the conditions apart. The other arguments are those of `recommend`.
    """
    fewest = runs_needed_for_share(target, confidence)
    arms: dict[tuple[str, str], list[str]] = {}
    for row in rows_of(frame):
        arms.setdefault((_condition(row, apart), _sentence(row, target, fewest)), []).append(one_line(row["arm"]))
    reached = (
        f"Reached: the lower bound of the {percent(confidence)} Wilson interval is at least {percent(target)}, tested "
        "from the largest decision timeout down to the first failure; all runs count, whatever became of them."
    )
    # Arms of which the same is to be said share a sentence.
    of_arms = [f"{join_names(names)}{condition}: {text}" for (condition, text), names in arms.items()]
    return (*of_arms, reached, *_assumptions(runs, frame, apart, calls))


def _sentence(row: Any, target: float, fewest: int) -> str:
    of_runs = f"{row['answered_in_time']} of {row['runs']} in time, at least {percent(row['low'], 1)}"
    ends = f" {row['endings']}." if row["endings"] else ""
    if row["verdict"] == "reached":
        shorter = f" Shorter: {row['shorter']}." if row["shorter"] else ""
        return f"{row['decision_timeout_s']:g} s ({of_runs}); {_costs(row)}.{ends}{shorter}"
    at = f"not shown. At its largest decision timeout, {row['decision_timeout_s']:g} s, {of_runs}"
    if row["verdict"] == "past its budget":
        return f"{at}, but runs went past a budget that is only measured there.{ends}"
    if row["verdict"] == "out of reach" or (row["endings"] and not row["by_time"]):
        return f"{at}.{ends} {_rest(row, target)}"
    if row["verdict"] == "not known":
        return f"{at}: in a replay a lower bound. Record with a longer decision timeout to know more.{ends}"
    rest = f"{ends} {_rest(row, target)}" if row["endings"] else ""
    if row["verdict"] == "below":
        return (
            f"{at} and at most {percent(row['high'], 1)}: the share is really below {percent(target)}, and a longer "
            f"decision timeout is needed. {_beyond(row)}{rest}"
        )
    if row["verdict"] == "too few runs":
        more = count_of(int(row["runs_missing"]), "more run")
        hint = f" (with no failure {fewest} are needed)" if row["answered_in_time"] == row["runs"] else ""
        return f"{at}: {more} would show {percent(target)} if the share held{hint}.{ends}"
    beside = f"it may still be above (up to {percent(row['high'], 1)})"
    if row["high"] < target:
        beside = "so few do not show either that it is below"
    return (
        f"{at}: no number of runs shows {percent(target)} at a share of {percent(row['share'], 1)}; {beside}. Try a "
        f"longer decision timeout. {_beyond(row)}{rest}"
    )


def _beyond(row: Any) -> str:
    return (
        f"Beyond {row['decision_timeout_s']:g} s these runs know nothing: runs of unguarded do, and what-if reads from "
        "them how long it takes."
    )


def _rest(row: Any, target: float) -> str:
    """Return the share that a decision timeout can reach where runs ended without an answer by themselves."""
    out_of_reach = f"{percent(target)} is out of reach until fewer runs end so."
    if row["verdict"] == "out of reach" and row["never_answered"] == row["runs"]:
        return out_of_reach
    reach = f"{percent(row['reachable'], 1)} [{percent(row['reachable_low'], 1)}, {percent(row['reachable_high'], 1)}]"
    if not row["by_time"]:
        nothing = "" if row["may_be_time"] else ", so a longer decision timeout changes nothing"
        others = f"Every other run was in time{nothing}"
    else:
        late = f"{row['by_time']} {'was' if row['by_time'] == 1 else 'were'} not in time"
        others = f"{late}: a longer decision timeout can have at most {reach} answered"
    if row["verdict"] == "out of reach":
        return f"{others}. {out_of_reach}"
    return f"{others}."


def shorter_in_words(steps: Sequence[Mapping[str, Any]], target: float, is_lower_bound: bool) -> str:
    """Return why no shorter decision timeout is recommended: "40 s: 79 of 80 in time [0.93, 1.00], …".

    steps: the decision timeouts of an arm that did not reach the target, from the largest down. target: share of runs
    answered in time. is_lower_bound: whether the shares are lower bounds, as those of a replay are.
    """
    return "; ".join(
        f"{step['decision_timeout_s']:g} s: {step['answered_in_time']} of {step['runs']} in time "
        f"[{step['low']:.2f}, {step['high']:.2f}], {_why_rejected(step, target, is_lower_bound)}"
        for step in steps
    )


def _why_rejected(step: Mapping[str, Any], target: float, is_lower_bound: bool) -> str:
    if is_lower_bound:
        return "a lower bound"
    if step["share"] < target and not step["runs_to_settle"]:
        return f"really below {percent(target)}"
    if step["low"] >= target:
        return "not tested after the longer one that failed"
    if math.isnan(step["runs_to_settle"]):
        return "no number of runs would settle it at this share"
    return f"about {count_of(int(step['runs_to_settle']), 'more run')} would settle it"


def _costs(row: Any) -> str:
    parts = [_overrun(row)]
    if math.isnan(row["late_server_s"]):
        parts.append("what the servers did afterwards cannot be known without their log")
    else:
        tokens = f" and {row['late_tokens']:.0f} tokens" if row["late_tokens"] >= 0.5 else ""
        parts.append(f"after the deadline servers were busy for {row['late_server_s']:.2f} s{tokens} a run")
    entry = CATALOGUE.get(row["alternative"])
    if entry is not None and entry.price:
        parts.append(f"the price: {entry.price}")
    return "; ".join(parts)


def _overrun(row: Any) -> str:
    worst = row["caller_overrun_name"] == "worst"
    which = "at worst" if worst else f"at {row['caller_overrun_name']}"
    if not row["caller_overrun_s"]:
        return "no caller waited too long" if worst else f"the caller did not wait too long {which}"
    if math.isinf(row["caller_overrun_s"]):
        return f"the caller was not back by the horizon {which}"
    return f"the caller waited {duration(row['caller_overrun_s'])} too long {which}"


class Chosen(NamedTuple):
    """What to choose in one condition, in words. settings: the line to paste. arms: those that are as good."""

    words: str
    settings: str = ""
    arms: tuple[str, ...] = ()


def choices_of(frame: pd.DataFrame, runs: pd.DataFrame, apart: Sequence[str], chosen_by: Chooses) -> Iterator[Chosen]:
    """Yield what to choose in each condition of a `Recommendation.frame`."""
    groups = frame.groupby(list(apart), observed=True, sort=False) if apart else [((), frame)]
    named = with_arms(runs)
    for values, group in groups:
        reached = [row for row in rows_of(group) if row["verdict"] == "reached"]
        where = _condition(group.iloc[0], apart)
        if not reached:
            yield Chosen(f"Nothing to choose{where}: no arm was shown to reach the target.")
            continue
        timeout_s = min(row["decision_timeout_s"] for row in reached)
        arms = [str(row["arm"]) for row in reached if row["decision_timeout_s"] == timeout_s]
        chosen_from = named[(named["decision_timeout_s"] == timeout_s) & named["arm"].astype("str").isin(arms)]
        for column, value in zip(apart, values, strict=True):
            chosen_from = chosen_from[chosen_from[column].astype("str") == str(value)]
        result = choose(chosen_from)
        evidence = "".join(f" {line}" for line in result.evidence())
        if not result.chosen:
            yield Chosen(f"Nothing to choose{where}: who reached the target did not keep the deadline.{evidence}")
            continue
        several = "; these runs do not tell them apart: choose by what each asks of your code"
        line = (
            f"Choose {join_names([one_line(arm) for arm in result.chosen], 'or')}{where}, with {timeout_s:g} s: the "
            f"smallest decision timeout that was shown to reach the target{several if len(result.chosen) > 1 else ''}."
            f"{evidence}"
        )
        first = chosen_from[chosen_from["arm"].astype("str") == result.chosen[0]].iloc[0]
        options = str(first["alternative_options"])
        pasted = choice_to_paste(chosen_by, str(first["alternative"]), timeout_s, options)
        yield Chosen(line, pasted, tuple(result.chosen))


def _condition(row: Any, apart: Sequence[str]) -> str:
    return f" ({in_words(row, apart)})" if apart else ""
