"""Delivery of queries is best-effort: it changes nothing for the user, and what fails is counted."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from docmind_lab.alternatives import Cooperative
from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.docmind.coordinator.delivery import Delivery, EndedQuery

QUERY = EndedQuery(Recorder("query-1", 1, Deadline.after(60.0)), Cooperative(), Outcome("answered"))


def test_a_failing_sink_is_counted_and_raises_nothing() -> None:
    def sink(query: EndedQuery) -> None:
        raise RuntimeError("no disk")

    delivery = Delivery(sink)
    delivery.report(QUERY)
    delivery.report(QUERY)
    delivery.close()
    assert delivery.failures == 2


def test_a_slow_sink_does_not_delay_whoever_reports() -> None:
    go_on, heard = threading.Event(), []

    def sink(query: EndedQuery) -> None:
        go_on.wait()
        heard.append(query)

    delivery = Delivery(sink)
    for _ in range(3):
        delivery.report(QUERY)  # would wait for ever if it were not handed over
    go_on.set()
    delivery.close()
    assert heard == [QUERY] * 3


def test_a_sink_takes_one_query_at_a_time_whoever_reports_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both look whether there is a thread to deliver before either starts one, if nothing keeps them from it.
    all_looked = threading.Barrier(2)
    started = []

    class Slow(threading.Thread):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                all_looked.wait(0.2)
            super().__init__(*arguments, **options)
            started.append(self)

    delivery = Delivery(lambda query: None)
    reporters = [threading.Thread(target=delivery.report, args=(QUERY,)) for _ in range(2)]
    monkeypatch.setattr("docmind_lab.systems.docmind.coordinator.delivery.threading", SimpleNamespace(Thread=Slow))
    for reporter in reporters:
        reporter.start()
    for reporter in reporters:
        reporter.join()
    delivery.close()
    assert len(started) == 1
    assert not started[0].is_alive()


def test_queries_beyond_what_may_wait_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docmind_lab.systems.docmind.coordinator.delivery._MOST_WAITING", 1)
    go_on, taken = threading.Event(), threading.Event()

    def sink(query: EndedQuery) -> None:
        taken.set()
        go_on.wait()

    delivery = Delivery(sink)
    delivery.report(QUERY)
    taken.wait()
    delivery.report(QUERY)
    delivery.report(QUERY)
    assert delivery.failures == 1
    go_on.set()
    delivery.close()
