"""What to choose of the arms of one condition, in sentences: the rows of a summary in, lines out.

The rule: those that hold the deadline and keep to the second budgets; of them the least work afterwards; then the most
to show for it. Who answered nothing because a second budget was spent is not among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from docmind_lab.budgets import NO_BUDGETS
from docmind_lab.findings.held import HELD_WITHIN_S
from docmind_lab.findings.measured_perf import CONTROL
from docmind_lab.findings.prices import SETTINGS
from docmind_lab.findings.second_budgets import is_budgeted, needs_of
from docmind_lab.findings.tables import counted, joined, one_line

Row = Mapping[str, Any]

# Differences between alternatives that are not told apart in a choice: server time per run, and source recall.
_SAME_BUSY_S = 0.05
_SAME_RECALL = 0.02


def advice_of(rows: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """What to choose, with its settings, and what the choice rests on.

    rows: of `summary.Summary.table`, one for each arm, with their `label`. runs: that they are of, of one condition.
    """
    enforcing = [row for row in rows if row["alternative"] != CONTROL]
    if not enforcing:
        yield "Nothing to choose from: no alternative that enforces the deadline was run."
        return
    held = [row for row in enforcing if row["caller_overrun_worst_s"] <= HELD_WITHIN_S and not row["unfinished"]]
    if not held:
        yield _none_held(enforcing)
    elif not (able := [row for row in held if _keeps(row) and not _is_starved(row)]):
        yield _none_able(held, runs)
    else:
        yield from _choice(able, runs)
    yield from _of_budgets(rows, runs)
    control = next((row for row in rows if row["alternative"] == CONTROL), None)
    if control is not None:
        yield _timeout_advice(control, float(runs["horizon_s"].iloc[0]))
    if not any(str(fault) != "none" for fault in runs["fault"].unique()):
        yield (
            "These were ordinary latencies. A call that hangs or trickles sets the alternatives further apart: "
            "docmind-lab compare --fault hang, --fault trickle."
        )
    yield f"{counted(rows[0]['runs'], 'run')} under each say nothing about rare events{_limits(runs)}."


def _keeps(row: Row) -> bool:
    """Whether it keeps to the second budgets: it looks at them, or no run of it went past one."""
    return bool(row["deadline_propagation"]) or not row["past_budget"]


def _is_starved(row: Row) -> bool:
    return not row["answered_in_time"] and bool(row["ended_by_budget"])


def _none_able(held: Sequence[Row], runs: pd.DataFrame) -> str:
    """Why nobody is chosen: nobody kept to the budgets, or nobody who did had an answer."""
    level = str(runs["second_budgets"].iloc[0])
    keeping = [row for row in held if _keeps(row)]
    past = [row for row in held if not _keeps(row)]
    beyond = [f"{_name(row)} in {row['past_budget']} of {row['runs']} runs" for row in past]
    if not keeping:
        return (
            f"Nothing to choose under {level}: none that was run keeps to it, and it was passed by {joined(beyond)}. A "
            "and E look at it, and B, C, D and F with :propagate: run one of them."
        )
    said = [
        f"{_name(row)} answered {row['answered_in_time']} of {row['runs']} in time, and a second budget ended "
        f"{row['ended_by_budget']}"
        for row in keeping
    ]
    others = f" The others that held the deadline went past it: {joined(beyond)}." if past else ""
    return f"Nothing to choose under {level}: {'; '.join(said)}.{others}"


def _of_budgets(rows: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """What a run needs that is not held to the second budgets, where they ended some or nobody looked at them."""
    if not is_budgeted(runs):
        return
    ended = sum(row["ended_by_budget"] for row in rows)
    needs = list(needs_of(runs))
    if ended and not needs:
        yield (
            f"Second budgets ended {counted(ended, 'run')}, and no run was answered that was not held to them, so what "
            "a run needs is not known: run the control beside them (unguarded), under a longer horizon."
        )
    short = [need for need in needs if need.beyond]
    yield from (need.text() for need in short or (needs if ended else []))


def _limits(runs: pd.DataFrame) -> str:
    """What the clock of the runs adds to what they cannot say."""
    if "wall" in {str(clock) for clock in runs["clock"]}:
        return ", and differences of a few milliseconds are noise of this machine"
    return "; in virtual time Python's own work takes none, so a real run is later by milliseconds: --clock wall"


def _choice(held: Sequence[Row], runs: pd.DataFrame) -> list[str]:
    least_busy = min(_known(row["busy_after_deadline_s"]) for row in held)
    quietest = [row for row in held if _known(row["busy_after_deadline_s"]) <= least_busy + _SAME_BUSY_S]
    recall = max(_known(row["source_recall"]) for row in quietest)
    richest = [row for row in quietest if _known(row["source_recall"]) >= recall - _SAME_RECALL]
    answered = max(row["answered_in_time"] for row in richest)
    # One answer more or less hangs on a few milliseconds around the deadline; it decides nothing.
    equals = [row for row in richest if row["answered_in_time"] >= answered - max(1, round(0.1 * row["runs"]))]
    names = " or ".join(_name(row) for row in equals)
    alike = " They do alike here: choose by their price." if len(equals) > 1 else ""
    kept = "" if all(math.isnan(row["source_recall"]) for row in quietest) else f"source recall {recall:.2f}, "
    level = str(runs["second_budgets"].iloc[0])
    within = "" if level == NO_BUDGETS else f", no call was begun beyond the second budget ({level})"
    timeout_s = f"{runs['decision_timeout_s'].iloc[0]:g}"
    unanswered = (
        ""
        if answered
        else f" Nobody was answered in time: this says who stops best, not that {timeout_s} s are enough."
    )
    blind = [] if level == NO_BUDGETS else [_name(row) for row in equals if not row["deadline_propagation"]]
    by_chance = f" {joined(blind)} did not look at it: no run came that far." if blind else ""
    is_seen = not all(math.isnan(row["busy_after_deadline_s"]) for row in held)
    afterwards = f", least work went on afterwards ({least_busy:.2f} server-seconds a run)" if is_seen else ""
    unseen = "" if is_seen else " What went on afterwards is not known without the servers' log, and decided nothing."
    choice = (
        f"Choose {names}: every caller was back within {HELD_WITHIN_S * 1000:.0f} ms of the deadline{within}"
        f"{afterwards} and the caller was left with the most ({kept}"
        f"{answered} of {equals[0]['runs']} answered in time).{unanswered}{by_chance}{unseen}{alike}"
    )
    timeout = f"DOCMIND_AGENTS__DECISION_TIMEOUT={timeout_s}"
    own = dict.fromkeys(SETTINGS[row["alternative"]] for row in equals if row["alternative"] in SETTINGS)
    return [choice, "Settings: " + " ".join([timeout, *own])]


def _none_held(enforcing: Sequence[Row]) -> str:
    best = min(enforcing, key=lambda row: row["caller_overrun_worst_s"])
    return (
        f"None held the deadline within {HELD_WITHIN_S * 1000:.0f} ms; {_name(best)} came closest, "
        f"{best['caller_overrun_worst_s']:.2f} s over at worst."
    )


def _timeout_advice(control: Row, horizon_s: float) -> str:
    """What the control says of a timeout. A run that was watched no longer might have answered after all."""
    said = []
    if control["unfinished"]:
        said.append(
            f"{control['unfinished']} of {counted(control['runs'], 'run')} had not come to an end at the horizon, "
            f"{horizon_s:g} s: a timeout must exceed that to answer them, and by how much is not known"
        )
    if control["failed"]:
        said.append(
            f"{control['failed']} of {counted(control['runs'], 'run')} failed, which no timeout would have answered"
        )
    if said:
        return f"Left alone, {'; '.join(said)}."
    return (
        f"Left alone, half of the runs took up to {control['returned_median_s']:.2f} s and the longest "
        f"{control['returned_worst_s']:.2f} s: that is what a timeout must exceed to answer these questions."
    )


def _name(row: Row) -> str:
    return one_line(row["label"])


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
