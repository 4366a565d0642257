"""After every test of virtual time: nothing is patched, and no thread is left."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docmind_lab.virtual_time import ending


def bound_names() -> dict[str, object]:
    """What the names are bound to that a run replaces."""
    return {
        "sleep": time.sleep,
        "monotonic": time.monotonic,
        "monotonic_ns": time.monotonic_ns,
        "perf_counter": time.perf_counter,
        "time": time.time,
        "Lock": threading.Lock,
        "allocate_lock": threading._allocate_lock,
        "RLock": threading.RLock,
        "start": threading.Thread.start,
        "join": threading.Thread.join,
        "is_alive": threading.Thread.is_alive,
        "SimpleQueue": queue.SimpleQueue,
        "Future": concurrent.futures._base.Future,
        "new_event_loop": asyncio.new_event_loop,
        "cpu_count": os.cpu_count,
    }


REAL = bound_names()


@pytest.fixture(autouse=True)
def everything_is_put_back() -> Iterator[None]:
    threads = set(threading.enumerate())
    yield
    assert bound_names() == REAL
    left = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in left:
        thread.join(5.0)
    assert not [thread.name for thread in left if thread.is_alive()]


@pytest.fixture
def soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What will not unwind is waited for half a second, not three: in these tests it never does."""
    monkeypatch.setattr(ending, "_UNWINDING_S", 0.5)


@pytest.fixture
def write_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that writes modules, their texts by name. They can be imported, and are forgotten after the test."""
    names: list[str] = []

    def write(**texts: str) -> None:
        names.extend(texts)
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    for name in names:
        sys.modules.pop(name, None)
