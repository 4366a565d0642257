"""The values that categorical columns of the tables may take, and the version of the schema."""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

SCHEMA_VERSION: Final = 6

CallOutcome = Literal["ok", "timeout", "cancelled", "error", "abandoned", "refused"]
CutBy = Literal["", "deadline", "first_token", "idle", "total", "wrap_up"]
RunOutcome = Literal["answered", "partial", "timed_out", "failed", "interrupted", "unfinished"]

CALL_OUTCOMES: Final = get_args(CallOutcome)
RUN_OUTCOMES: Final = get_args(RunOutcome)
ENDED_UNANSWERED: Final = ("failed", "interrupted")
"""Outcomes of a run that ended by itself and has no answer: by an error, or because it waits for a person."""
TIMEOUT_REASONS: Final = (
    "deadline",
    "budget_refused",
    "hard_timeout",
    "cancelled",
    "stop_flag",
    "step_timeout",
    "node_timeout",
    "left_behind",
)
"""Stop reasons of a run that its deadline ended."""

SPENDING_REASONS: Final = ("token_budget", "call_budget", "cost_budget")
"""Stop reasons of a run that a budget of tokens, calls or cost ended."""

STOP_REASONS: Final = (
    "",
    *TIMEOUT_REASONS,
    *SPENDING_REASONS,
    "step_limit",
    "no_agent",
    "error",
    "interrupted",
    "horizon",
)
NAN: Final = math.nan

ROLES: Final = ("router", "planner", "retrieval", "synthesis", "validation")
"""The agents of DocMind, in the order of work."""

SUPERVISOR_ROLE: Final = "supervisor"

RECORDED: Final = "recorded"
"""The latency profile of a replay: its times are those of a recording."""
