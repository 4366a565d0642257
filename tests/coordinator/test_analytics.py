"""Analytics are best-effort: they change nothing for the user, and what fails is counted."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import pytest

from docmind_lab.coordinator import AnalyticsEvent, MultiAgentCoordinator
from docmind_lab.coordinator.analytics import Analytics

EVENT = AnalyticsEvent("t", "cooperative", "answered", "", 1.0, 2.0, 5, 9, False)


def test_a_failing_sink_is_counted_and_raises_nothing() -> None:
    def sink(event: AnalyticsEvent) -> None:
        raise RuntimeError("no disk")

    analytics = Analytics(sink)
    analytics.report(EVENT)
    analytics.report(EVENT)
    analytics.close()
    assert analytics.failures == 2


def test_a_slow_sink_does_not_delay_whoever_reports() -> None:
    go_on, heard = threading.Event(), []

    def sink(event: AnalyticsEvent) -> None:
        go_on.wait()
        heard.append(event)

    analytics = Analytics(sink)
    for _ in range(3):
        analytics.report(EVENT)  # would wait for ever if it were not handed over
    go_on.set()
    analytics.close()
    assert heard == [EVENT] * 3


def test_events_beyond_what_may_wait_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docmind_lab.coordinator.delivery._MOST_WAITING", 1)
    go_on, taken = threading.Event(), threading.Event()

    def sink(event: AnalyticsEvent) -> None:
        taken.set()
        go_on.wait()

    analytics = Analytics(sink)
    analytics.report(EVENT)
    taken.wait()
    analytics.report(EVENT)
    analytics.report(EVENT)
    assert analytics.failures == 1
    go_on.set()
    analytics.close()


@pytest.mark.wall
def test_a_query_reports_names_and_numbers_only(coordinator: Callable[..., MultiAgentCoordinator]) -> None:
    heard: list[AnalyticsEvent] = []
    made = coordinator(analytics=heard.append)
    made.process_query("What is a canary9731 statement?")
    made.close()
    (event,) = heard
    assert event.alternative == "cooperative"
    assert "canary9731" not in repr(dataclasses.asdict(event))
