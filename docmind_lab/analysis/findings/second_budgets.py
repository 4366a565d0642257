"""The effect of budgets of tokens, calls and cost on runs, what a run needs, and how much is enough.

    found = spending_of(of_arm)         # of the runs of one arm under one budget; None where there is no limit
    for need in needs_of(runs):         # of each limit: what answered runs used where nobody held them to it
        print(need.text())

A budget of tokens, calls or cost is enforced where the deadline is propagated into calls, and only measured elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from docmind_lab.analysis.conditions import varying, with_arms
from docmind_lab.analysis.findings.measured_perf import CONTROL
from docmind_lab.analysis.statistics.shares import share_interval
from docmind_lab.analysis.text import count_of, join_names, one_line, percent
from docmind_lab.core.budgets import NO_BUDGETS, STOP_REASON_OF, Kind, order_of_level

KINDS: Final[tuple[Kind, ...]] = ("tokens", "calls", "cost")
# A price times some thousand tokens has many digits, of which nobody sets more than these.
_COST_DIGITS: Final = 3


@dataclass(frozen=True)
class Excess:
    """How far runs exceeded a limit. runs: how many did; median, most: of their excess, in the limit's unit."""

    kind: Kind
    limit: float
    runs: int
    median: float
    most: float


@dataclass(frozen=True)
class Spending:
    """The effect of the second budgets on the runs of one arm.

    is_enforced: the arm looks at them. ended: runs that a budget ended, by kind, of those with a limit. passed: of each
    limit, also where nobody went past it. any_passed: runs that went past any of them.
    """

    runs: int
    is_enforced: bool
    ended: Mapping[Kind, int]
    passed: tuple[Excess, ...]
    any_passed: int

    @property
    def any_ended(self) -> int:
        """The number of runs that a second budget ended."""
        return sum(self.ended.values())

    @property
    def keeps(self) -> bool:
        """Whether the arm enforces its second budgets, or no run of it exceeded one."""
        return self.is_enforced or not self.any_passed

    def ended_text(self) -> str:
        """Return which budget ended how many runs: "the call budget ended 3 of 3 runs"."""
        phrases = [f"the {_name(kind)} ended {n} of {self.runs} runs" for kind, n in self.ended.items() if n]
        return join_names(phrases) if phrases else f"no second budget ended any of {self.runs} runs"

    def text(self) -> str:
        """Return the effect of the budgets on the arm, as a part of a sentence."""
        past = [item for item in self.passed if item.runs]
        if self.is_enforced:
            beyond = [f"what was under way passed the {_name(item.kind)} {self._how_far(item)}" for item in past]
            return "; ".join([self.ended_text(), *beyond])
        limits = join_names([amount(item.kind, item.limit) for item in self.passed])
        if not past:
            return f"the second budget of {limits} is measured only, and no run went past it"
        beyond = [
            f"{f'the {_name(item.kind)} was passed ' if len(self.passed) > 1 else 'passed '}{self._how_far(item)}"
            for item in past
        ]
        return f"the second budget of {limits} is measured only: {join_names(beyond)}"

    def _how_far(self, item: Excess) -> str:
        by = amount(item.kind, item.median)
        if item.median != item.most:
            by = f"{by} at the median and {number(item.kind, item.most)} at most"
        return f"in {item.runs} of {self.runs} runs, by {by}"


@dataclass(frozen=True)
class Need:
    """How much of a budget answered runs used when nothing enforced its limit.

    whose: "the control", or "arms that do not enforce it". beyond: of these runs, how many used more than the limit.
    """

    kind: Kind
    limit: float
    whose: str
    runs: int
    least: float
    median: float
    most: float
    beyond: int

    def text(self) -> str:
        """Return the cause and the remedy, for a limit that ended runs."""
        used = amount(self.kind, self.median)
        if self.least != self.most:
            # The unit once: "9 to 12 calls", "a cost of 0.001 to 0.002".
            span = f"{number(self.kind, self.least)} to {number(self.kind, self.most)}"
            used = f"a cost of {span}" if self.kind == "cost" else f"{span} {self.kind}"
            used += f" ({number(self.kind, self.median)} at the median)"
        of_them = "none of them can finish" if self.beyond == self.runs else f"{self.beyond} of them cannot finish"
        limit = amount(self.kind, self.limit)
        if not self.beyond:
            return (
                f"Not held to it, {self.whose} used {used} in {count_of(self.runs, 'answered run')}: {limit} would "
                "have been enough for those."
            )
        return (
            f"Not held to it, {self.whose} used {used} in {count_of(self.runs, 'answered run')}; with {limit} "
            f"{of_them}. Give --budget-{self.kind} {_round_up(self.kind, self.most)} or more, or no such limit."
        )


def is_budgeted(runs: pd.DataFrame) -> bool:
    """Whether any of the runs had a second budget."""
    return bool((runs["second_budgets"].astype("str") != NO_BUDGETS).any())


def levels_in_words(levels: Iterable[str]) -> list[str]:
    """Return levels of second budgets in words, the tightest first: "6 calls and 0.02 cost"."""
    return [join_names(level.split(", ")) for level in sorted(set(levels), key=order_of_level)]


def past_a_budget(runs: pd.DataFrame) -> pd.Series[bool]:
    """Return for each run whether it exceeded any of its second budgets."""
    return (runs[[f"{kind}_overspent" for kind in KINDS]] > 0).any(axis=1)


def ordered_levels(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with their second budgets as an ordered categorical: the tightest first, none last."""
    levels = runs["second_budgets"].astype("str")
    return runs.assign(
        second_budgets=pd.Categorical(levels, categories=sorted(set(levels), key=order_of_level), ordered=True)
    )


def spending_of(of_arm: pd.DataFrame) -> Spending | None:
    """Return the effect of second budgets on the runs of one arm and budget; None if they have none."""
    if not is_budgeted(of_arm):
        return None
    limits = _limits(of_arm)
    reasons = of_arm["stop_reason"].astype("str")
    beyond = {kind: of_arm[f"{kind}_overspent"] for kind in limits}
    return Spending(
        runs=len(of_arm),
        is_enforced=bool(of_arm["deadline_propagation"].all()),
        ended={kind: int((reasons == STOP_REASON_OF[kind]).sum()) for kind in limits},
        passed=tuple(_excess(kind, limit, beyond[kind]) for kind, limit in limits.items()),
        any_passed=int(past_a_budget(of_arm).sum()),
    )


def needs_of(runs: pd.DataFrame) -> Iterator[Need]:
    """Yield for each limit of runs under one budget how much a run without that limit needs."""
    free = runs[(runs["outcome"].astype("str") == "answered") & ~runs["deadline_propagation"].astype("bool")]
    control = free[free["alternative"].astype("str") == CONTROL]
    whose, known = ("the control", control) if len(control) else ("the arms that do not enforce it", free)
    if known.empty:
        return
    for kind, limit in _limits(runs).items():
        used = known[f"{kind}_spent"]
        beyond = int((known[f"{kind}_overspent"] > 0).sum())
        yield Need(kind, limit, whose, len(known), float(used.min()), float(used.median()), float(used.max()), beyond)


def amount(kind: Kind, value: float) -> str:
    """Return an amount with its unit: "6 calls", "1 call", "a cost of 0.02"."""
    if kind == "cost":
        return f"a cost of {number(kind, value)}"
    return f"{number(kind, value)} {kind.removesuffix('s') if value == 1 else kind}"


def number(kind: Kind, value: float) -> str:
    """Return an amount without its unit, in as many digits as are meaningful."""
    if kind == "cost":
        return f"{value:.{_COST_DIGITS}g}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _limits(runs: pd.DataFrame) -> dict[Kind, float]:
    # A limit's column is called as the stop reason of a run that it ended.
    result = {kind: runs[STOP_REASON_OF[kind]].dropna() for kind in KINDS}
    return {kind: float(values.iloc[0]) for kind, values in result.items() if len(values)}


def _excess(kind: Kind, limit: float, beyond: pd.Series[float]) -> Excess:
    past = beyond[beyond > 0]
    median, most = (float(past.median()), float(past.max())) if len(past) else (0.0, 0.0)
    return Excess(kind, limit, len(past), median, most)


def _name(kind: Kind) -> str:
    """Return the name of a budget as in its stop reason: "call budget"."""
    return STOP_REASON_OF[kind].replace("_", " ")


def _round_up(kind: Kind, value: float) -> str:
    if kind != "cost" or value == 0:
        return f"{math.ceil(value)}"
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - _COST_DIGITS)
    return f"{math.ceil(value / unit) * unit:.12g}"


def budget_sufficiency(runs: pd.DataFrame) -> Iterator[str]:
    """Yield which limit is enough, for each arm, condition and budget with several limits.

    The other limits are part of a condition. A limit counts as enough only if no larger one ended a run either.
    """
    named = with_arms(runs[runs["deadline_propagation"].astype("bool")])
    for kind in KINDS:
        column = STOP_REASON_OF[kind]
        limited = named[named[column].notna()]
        if limited[column].nunique() < 2:
            continue
        others = [STOP_REASON_OF[other] for other in KINDS if other != kind]
        apart = [name for name in varying(limited) if name not in ("second_budgets", "horizon_s")]
        apart += [name for name in others if limited[name].nunique(dropna=False) > 1]
        for values, group in limited.groupby([*apart, "arm"], observed=True, sort=True, dropna=False):
            if group[column].nunique() > 1:
                where = ", ".join(_level_text(name, value) for name, value in zip(apart, values, strict=False))
                enough = _sufficiency(kind, _steps_of(kind, group))
                yield f"{one_line(str(values[-1]))}{where and f' ({where})'}: {enough}."


def _steps_of(kind: Kind, group: pd.DataFrame) -> list[dict[str, Any]]:
    """Return for each limit, the tightest first, how many runs it ended, others ended, and were in time."""
    return [
        {
            "limit": float(str(limit)),
            "runs": len(of_limit),
            "ended": int((of_limit["stop_reason"].astype("str") == STOP_REASON_OF[kind]).sum()),
            "in_time": int(of_limit["answered_in_time"].sum()),
            "ended_first": _ends_by_others(kind, of_limit),
        }
        for limit, of_limit in group.groupby(STOP_REASON_OF[kind], sort=True)
    ]


def _ends_by_others(kind: Kind, of_limit: pd.DataFrame) -> str:
    """Return how many runs other second budgets ended: "the cost budget ended 2 of them"; "" if none."""
    reasons = of_limit["stop_reason"].astype("str").value_counts()
    others = [STOP_REASON_OF[other] for other in KINDS if other != kind]
    phrases = [f"the {name.replace('_', ' ')} ended {reasons[name]} of them" for name in others if name in reasons]
    return join_names(phrases) if phrases else ""


def _sufficiency(kind: Kind, steps: Sequence[dict[str, Any]]) -> str:
    tight = [place for place, step in enumerate(steps) if step["ended"]]
    first = tight[-1] + 1 if tight else 0
    phrases = [f"{amount(kind, step['limit'])} ended {step['ended']} of {step['runs']} runs" for step in steps[:first]]
    if first == len(steps):
        most = number(kind, steps[-1]["limit"])
        return f"{join_names(phrases)}; no limit that was tried ended none, so try more than {most}"
    step = steps[first]
    bound = percent(share_interval(0, step["runs"]).high, 1)
    tighter = f"{join_names(phrases)}; " if phrases else ""
    were = "was" if step["in_time"] == 1 else "were"
    # A run that was over before says nothing of what it would have used.
    others = step["ended_first"]
    first_ended = f"; {others}, and what those would have used is not known" if others else ""
    return (
        f"{tighter}{amount(kind, step['limit'])} is the smallest limit tried that ended none of {step['runs']} (at "
        f"most {bound} of runs, by its 95% Wilson interval), and {step['in_time']} {were} answered in time{first_ended}"
    )


def _level_text(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]
        return f"no {column.replace('_', ' ')}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{column.removesuffix('_s').replace('_', ' ')} {text}{' s' if column.endswith('_s') else ''}"
