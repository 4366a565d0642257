"""Analytics: best-effort and off the critical path. A sink that fails or lags changes nothing for the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docmind_lab.docmind.coordinator.delivery import Delivery


@dataclass(frozen=True)
class AnalyticsEvent:
    """One query, in names and numbers: no question, no answer, no document.

    outcome, stop_reason: as in the tables. processing_time_s: from the call to the response.
    """

    thread_id: str
    alternative: str
    outcome: str
    stop_reason: str
    processing_time_s: float
    decision_timeout_s: float
    documents: int
    llm_calls: int
    fallback_used: bool


Sink = Callable[[AnalyticsEvent], object]


class Analytics(Delivery[AnalyticsEvent]):
    """Hands events to a sink in a thread of its own. failures: events the sink raised for, and events dropped."""

    def __init__(self, sink: Sink | None) -> None:
        super().__init__(sink, "docmind-analytics")
