"""Analytics are best-effort: they change nothing for the user, and what fails is counted."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from docmind_lab.systems.docmind.coordinator import AnalyticsEvent, MultiAgentCoordinator
from docmind_lab.systems.docmind.coordinator.delivery import Delivery

EVENT = AnalyticsEvent("t", "cooperative", "answered", "", 1.0, 2.0, 5, 9, False)


def test_a_failing_sink_is_counted_and_raises_nothing() -> None:
    def sink(event: AnalyticsEvent) -> None:
        raise RuntimeError("no disk")

    analytics = Delivery[AnalyticsEvent](sink, "sink")
    analytics.report(EVENT)
    analytics.report(EVENT)
    analytics.close()
    assert analytics.failures == 2


def test_a_slow_sink_does_not_delay_whoever_reports() -> None:
    go_on, heard = threading.Event(), []

    def sink(event: AnalyticsEvent) -> None:
        go_on.wait()
        heard.append(event)

    analytics = Delivery[AnalyticsEvent](sink, "sink")
    for _ in range(3):
        analytics.report(EVENT)  # would wait for ever if it were not handed over
    go_on.set()
    analytics.close()
    assert heard == [EVENT] * 3


def test_a_sink_takes_one_event_at_a_time_whoever_reports_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both look whether there is a thread to deliver before either starts one, if nothing keeps them from it.
    all_looked = threading.Barrier(2)
    started = []

    class Slow(threading.Thread):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                all_looked.wait(0.2)
            super().__init__(*arguments, **options)
            started.append(self)

    analytics = Delivery[AnalyticsEvent](lambda event: None, "sink")
    reporters = [threading.Thread(target=analytics.report, args=(EVENT,)) for _ in range(2)]
    monkeypatch.setattr("docmind_lab.systems.docmind.coordinator.delivery.threading", SimpleNamespace(Thread=Slow))
    for reporter in reporters:
        reporter.start()
    for reporter in reporters:
        reporter.join()
    analytics.close()
    assert len(started) == 1
    assert not started[0].is_alive()


def test_events_beyond_what_may_wait_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docmind_lab.systems.docmind.coordinator.delivery._MOST_WAITING", 1)
    go_on, taken = threading.Event(), threading.Event()

    def sink(event: AnalyticsEvent) -> None:
        taken.set()
        go_on.wait()

    analytics = Delivery[AnalyticsEvent](sink, "sink")
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
