"""A thread that does the newest thing asked of it, and is there only while it has something to do."""

from __future__ import annotations

import threading

import pytest
from scripted_runs import PATIENCE_S

from docmind_lab.interfaces.panels.newest import Newest


def test_only_the_newest_of_what_was_asked_meanwhile_is_done() -> None:
    done: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def do(item: int) -> None:
        begun.set()
        go_on.wait(PATIENCE_S)
        done.append(item)

    newest = Newest(do, "test-newest")
    newest.ask(1)
    begun.wait(PATIENCE_S)
    for item in (2, 3, 4):
        newest.ask(item)
    go_on.set()
    assert newest.wait(PATIENCE_S)
    assert done == [1, 4]


def test_no_thread_is_left_when_nothing_is_left_to_do() -> None:
    newest = Newest(lambda _: None, "test-newest-gone")
    for item in range(20):
        newest.ask(item)
    assert newest.wait(PATIENCE_S)
    newest.ask(99)
    assert newest.wait(PATIENCE_S)
    assert not [thread for thread in threading.enumerate() if thread.name == "test-newest-gone" and thread.is_alive()]


def test_a_defect_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(threading, "excepthook", lambda report: reported.append(report.exc_type))

    def do(_: int) -> None:
        raise ZeroDivisionError

    newest = Newest(do, "test-newest-defect")
    newest.ask(1)
    assert newest.wait(PATIENCE_S)
