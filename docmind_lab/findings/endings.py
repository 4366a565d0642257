"""Runs that ended without an answer by themselves: with which error or budget, and whether time had a part in it.

    endings_of(with_endings(runs, []))["endings"]   # "20 of 40 failed (ValueError in node work); no timeout would …"

A failure says nothing of time where the run ended before its deadline and nothing in it looked at that deadline. An
alternative that propagates the deadline can bring a failure about: a client that may not wait as long as a server asks
gives up at once. Such a failure counts only where the same one came without a deadline in force.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from docmind_lab.core.levels import SPENDING_REASONS
from docmind_lab.core.text import join_names, one_line
from docmind_lab.tables.conditions import CONTROL, with_arms

_ERRORS_NAMED = 4


def with_endings(runs: pd.DataFrame, apart: Sequence[str]) -> pd.DataFrame:
    """Return the runs with two columns: whether each failed or stopped by itself, or may have done so for lack of time.

    `ended_by_itself`: no decision timeout would have it answered. `may_be_time`: it failed, and the study has neither
    the same failure without a deadline in force, nor the same run of the control answered.

    runs: the table of runs, with those of every arm. apart: the columns that tell its conditions apart, the decision
    timeout not among them.
    """
    outcome, control = runs["outcome"].astype("str"), runs["alternative"].astype("str") == CONTROL
    by_budget = ended_by_budget(runs)
    unanswered = outcome.isin(("failed", "interrupted")) & ~by_budget
    before_deadline = unanswered & ((runs["returned_at_s"] < runs["decision_timeout_s"]) | control)
    knows_deadline = runs["deadline_propagation"].astype("bool")
    run = [*apart, "seed", "question_id"]
    failure = _keys(runs, [*run, "outcome", "error_type", "error_node"])
    fails_without = failure.isin(set(failure[before_deadline & ~knows_deadline]))
    has_no_calls = (runs["llm_calls"] + runs["retrieval_calls"]) == 0
    not_by_time = ~knows_deadline | has_no_calls | (outcome == "interrupted") | fails_without
    by_itself = by_budget | (before_deadline & not_by_time)
    same_run = _keys(runs, run)
    answered_without = same_run.isin(set(same_run[control & (outcome == "answered")]))
    return runs.assign(ended_by_itself=by_itself, may_be_time=unanswered & ~by_itself & ~answered_without)


def ended_by_budget(runs: pd.DataFrame) -> pd.Series[bool]:
    """Return for each run whether a budget of tokens, calls or cost ended it."""
    return runs["stop_reason"].astype("str").isin(SPENDING_REASONS)


def control_failed(runs: pd.DataFrame) -> bool:
    """Whether every run without a deadline and without a fault ended in an error.

    Then nothing is known of what a deadline does to an answer: there was none to be had.

    runs: rows of `runs`.
    """
    control = runs[(runs["alternative"].astype("str") == CONTROL) & (runs["fault"].astype("str") == "none")]
    failed = (control["outcome"].astype("str") == "failed") & ~ended_by_budget(control)
    return len(control) > 0 and bool(failed.all())


def went_past_budget(runs: pd.DataFrame) -> pd.Series[bool]:
    """Return for each run whether it exceeded a budget of tokens, calls or cost that its alternative only measures."""
    over = (runs[["tokens_overspent", "calls_overspent", "cost_overspent"]] > 0).any(axis=1)
    return over & ~runs["deadline_propagation"].astype("bool")


def budget_notes(runs: pd.DataFrame) -> Iterator[str]:
    """Yield what budgets of tokens, calls and cost did to each arm; nothing where they did nothing."""
    for arm, group in with_arms(runs).groupby("arm", observed=True, sort=True):
        ended, past = group[ended_by_budget(group)], int(went_past_budget(group).sum())
        if len(ended):
            yield f"{one_line(str(arm))}: the {_budgets(ended)} ended {len(ended)} of {len(group)} runs."
        if past:
            yield f"{one_line(str(arm))} only measures its budget: {past} of {len(group)} runs went past it."


def _budgets(ended: pd.DataFrame) -> str:
    return join_names([reason.replace("_", " ") for reason in sorted(set(ended["stop_reason"].astype("str")))])


def endings_of(of_arm: pd.DataFrame) -> dict[str, Any]:
    """Return how the runs of one arm at one decision timeout ended, for a row of a recommendation.

    of_arm: its runs, with the columns of `with_endings`.

    Returns:
        never_answered: Runs that no decision timeout would have answered: they failed, wait for a person, or a budget
        of tokens, calls or cost ended them. may_be_time: Runs that failed under a deadline that they looked at, so that
        it may have a part in it. by_time: Runs that were not in time for any other reason. endings: What ended the
        runs, in words, and that no timeout changes it; "" where nothing but time did.
    """
    runs, itself, unsure = len(of_arm), of_arm["ended_by_itself"], of_arm["may_be_time"]
    spent = ended_by_budget(of_arm)
    waiting = itself & (of_arm["outcome"].astype("str") == "interrupted")
    failed = itself & ~waiting & ~spent
    parts = []
    if failed.any():
        parts.append(f"{failed.sum()} of {runs} failed ({errors_in_words(of_arm[failed])})")
    if waiting.any():
        nodes = sorted({str(node) for node in of_arm.loc[waiting, "error_node"]} - {""})
        where = f"in node {join_names(nodes)}" if nodes else "at a breakpoint"
        parts.append(f"{waiting.sum()} of {runs} stopped {where} to wait for a person")
    if spent.any():
        parts.append(f"the {_budgets(of_arm[spent])} ended {spent.sum()} of {runs}")
    words = join_names(parts)
    phrases = [f"{words[0].upper()}{words[1:]}; no timeout would have them answered"] if parts else []
    if unsure.any():
        phrases.append(
            f"{unsure.sum()} of {runs} failed ({errors_in_words(of_arm[unsure])}) under a deadline that they looked "
            "at; whether a longer one would have them answered is not known without the same runs of unguarded"
        )
    return {
        "never_answered": int((failed | waiting | spent).sum()),
        "may_be_time": int(unsure.sum()),
        "by_time": int((~of_arm["answered_in_time"].astype("bool") & ~itself & ~unsure).sum()),
        "endings": ". ".join(phrases),
    }


def errors_in_words(failed: pd.DataFrame) -> str:
    """Return which errors ended runs and where: "ValueError in node work", with counts where there are several.

    failed: failed runs, with `error_type` and `error_node`.
    """
    pairs = zip(failed["error_type"].astype("str"), failed["error_node"].astype("str"), strict=True)
    counts = Counter(pairs).most_common()
    phrases = [
        f"{error or 'an error without a name'}{f' in node {node}' if node else ''}"
        + (f": {count}" if len(counts) > 1 else "")
        for (error, node), count in counts
    ]
    others = ["others"] if len(phrases) > _ERRORS_NAMED else []
    return join_names([*phrases[:_ERRORS_NAMED], *others]) if phrases else ""


def _keys(runs: pd.DataFrame, columns: Sequence[str]) -> pd.Series[str]:
    return pd.Series("\n".join(map(str, row)) for row in runs[list(columns)].itertuples(index=False)).set_axis(
        runs.index
    )
