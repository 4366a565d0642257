"""Conditions as people say them: "10 s decision timeout, fault hang"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from docmind_lab.analysis.conditions import varying
from docmind_lab.analysis.findings.second_budgets import second_budget_in_words


def apart(runs: pd.DataFrame) -> list[str]:
    """The columns that tell the conditions of these runs apart, the horizon left out, since it follows the budget."""
    return [column for column in varying(runs) if column != "horizon_s"]


def in_words(condition: Mapping[str, Any] | pd.Series[Any], columns: Sequence[str]) -> str:
    """The values of these columns, in words; "" for no columns."""
    return ", ".join(_said(column, condition[column]) for column in columns)


def _said(column: str, value: Any) -> str:
    if column == "decision_timeout_s":
        return f"{value:g} s decision timeout"
    if column == "stops_on_disconnect":
        return "servers stop on disconnect" if value else "servers do not stop on disconnect"
    if column == "router_injection":
        return "router injected" if value else "no router injected"
    if column == "fault":
        return "no fault" if str(value) in ("", "none") else f"fault {value}"
    if column == "second_budgets":
        return second_budget_in_words(str(value))
    if column == "latency_profile":
        return f"{value} latencies" if str(value) else "live services"
    return f"{value} clock" if column == "clock" else f"{column.replace('_', ' ')} {value}"
