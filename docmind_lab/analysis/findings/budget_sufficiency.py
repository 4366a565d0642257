"""How much of a second budget is enough: of the limits that a study went through, the smallest that ended no run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from docmind_lab.analysis.conditions import varying, with_arms
from docmind_lab.analysis.findings.second_budgets import KINDS, amount, number
from docmind_lab.analysis.findings.tables import joined, one_line, percent
from docmind_lab.analysis.statistics import share_interval
from docmind_lab.core.budgets import STOP_REASON_OF, Kind


def enough_of(runs: pd.DataFrame) -> Iterator[str]:
    """A sentence for each arm that enforces second budgets, of each limit with several values, in each condition.

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
                where = ", ".join(_said(name, value) for name, value in zip(apart, values, strict=False))
                yield f"{one_line(str(values[-1]))}{where and f' ({where})'}: {_enough(kind, _steps(kind, group))}."


def _steps(kind: Kind, group: pd.DataFrame) -> list[dict[str, Any]]:
    """The limits from the tightest on: how many runs each ended, or another one did, and how many were in time."""
    return [
        {
            "limit": float(str(limit)),
            "runs": len(of_limit),
            "ended": int((of_limit["stop_reason"].astype("str") == STOP_REASON_OF[kind]).sum()),
            "in_time": int(of_limit["answered_in_time"].sum()),
            "ended_first": _ended_by_others(kind, of_limit),
        }
        for limit, of_limit in group.groupby(STOP_REASON_OF[kind], sort=True)
    ]


def _ended_by_others(kind: Kind, of_limit: pd.DataFrame) -> str:
    """Which other second budgets ended how many of the runs: "the cost budget ended 2 of them"; empty if none did."""
    reasons = of_limit["stop_reason"].astype("str").value_counts()
    others = [STOP_REASON_OF[other] for other in KINDS if other != kind]
    said = [f"the {name.replace('_', ' ')} ended {reasons[name]} of them" for name in others if name in reasons]
    return joined(said) if said else ""


def _enough(kind: Kind, steps: Sequence[dict[str, Any]]) -> str:
    tight = [place for place, step in enumerate(steps) if step["ended"]]
    first = tight[-1] + 1 if tight else 0
    said = [f"{amount(kind, step['limit'])} ended {step['ended']} of {step['runs']} runs" for step in steps[:first]]
    if first == len(steps):
        return (
            f"{joined(said)}; no limit that was tried ended none, so try more than {number(kind, steps[-1]['limit'])}"
        )
    step = steps[first]
    bound = percent(share_interval(0, step["runs"]).high, 1)
    tighter = f"{joined(said)}; " if said else ""
    were = "was" if step["in_time"] == 1 else "were"
    # A run that was over before says nothing of what it would have used.
    others = step["ended_first"]
    first_ended = f"; {others}, and what those would have used is not known" if others else ""
    return (
        f"{tighter}{amount(kind, step['limit'])} is the smallest limit tried that ended none of {step['runs']} (at "
        f"most {bound} of runs, by its 95% Wilson interval), and {step['in_time']} {were} answered in time{first_ended}"
    )


def _said(column: str, value: object) -> str:
    if pd.isna(value):  # type: ignore[call-overload]
        return f"no {column.replace('_', ' ')}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{column.removesuffix('_s').replace('_', ' ')} {text}{' s' if column.endswith('_s') else ''}"
