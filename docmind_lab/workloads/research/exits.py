"""Why work on a source ended, which reason comes first, and the one event that says so.

event                                       written once for every source that was started
source_saturation_complete                  whatever ended it, exceptions and cancellation included
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal

COMPLETE = "source_saturation_complete"
"""Name of the event."""

ExitReason = Literal[
    "llm_saturated",
    "max_queries_reached",
    "time_limit_reached",
    "research_budget_exhausted",
    "query_generation_error",
    "empty_query_suggestion",
    "duplicate_query_skipped",
    "unknown_source",
    "source_error",
    "cancelled",
]

EXIT_REASONS: Mapping[ExitReason, str] = MappingProxyType(
    {
        "llm_saturated": "The model decided that the source has nothing more to give.",
        "max_queries_reached": "The source had as many attempts as it was allowed.",
        "time_limit_reached": "The source had used up its time when an attempt was over.",
        "research_budget_exhausted": "The budget of the research, or a propagated deadline, was over.",
        "query_generation_error": "The model gave no usable decision, after one more chance.",
        "empty_query_suggestion": "The model had no further query to suggest.",
        "duplicate_query_skipped": "The query suggested had been put to the source before, or nearly so.",
        "unknown_source": "The task names a source that does not exist.",
        "source_error": "Something broke that the loop does not know how to go on from.",
        "cancelled": "The work was stopped from outside: cancelled, or drained between two steps.",
    }
)
"""What each reason means."""

# A source that ended for one of these was not searched to its end.
CUT_SHORT: frozenset[ExitReason] = frozenset(
    {
        "max_queries_reached",
        "time_limit_reached",
        "research_budget_exhausted",
        "query_generation_error",
        "unknown_source",
        "source_error",
        "cancelled",
    }
)


def exit_after_attempt(
    *, saturated: bool, attempts: int, max_queries: int, source_time_over: bool, budget_over: bool
) -> ExitReason | None:
    """The reason that counts when an attempt is over, failed or not; None to go on.

    The model's decision comes first, then the number of attempts, then the source's time, then the research budget.
    """
    if saturated:
        return "llm_saturated"
    if attempts >= max_queries:
        return "max_queries_reached"
    if source_time_over:
        return "time_limit_reached"
    return "research_budget_exhausted" if budget_over else None


@dataclass(frozen=True)
class Completion:
    """How the work on one source, for one hypothesis, ended.

    queries_executed: attempts, of which queries_failed failed. results_found: by the source, before anything was
    filtered. results_accepted: by the filter, each once. results_unfiltered: kept although the budget ended before
    the filter saw them. saturation_decision: the last one, None if there was none; reasoning: what was given for it.
    note: what a person should know. started_at_s, ended_at_s: seconds since the start of the research.
    """

    hypothesis: str
    source: str
    exit_reason: ExitReason
    queries_executed: int = 0
    queries_failed: int = 0
    results_found: int = 0
    results_accepted: int = 0
    results_unfiltered: int = 0
    saturation_decision: str | None = None
    reasoning: str = ""
    note: str = ""
    started_at_s: float = 0.0
    ended_at_s: float = 0.0

    @property
    def is_partial(self) -> bool:
        """Whether the source was not searched to its end."""
        return self.exit_reason in CUT_SHORT

    def as_event(self) -> dict[str, Any]:
        """The completion as a line of the event log: with the texts that people debug by."""
        return {"event": COMPLETE, **asdict(self)}

    def without_texts(self) -> dict[str, Any]:
        """The completion as the events table holds it: names and numbers."""
        return {name: value for name, value in asdict(self).items() if name not in ("reasoning", "note")}
