"""The threads of a run stay on one core, as long as it has time for them."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterable

import pytest

from docmind_lab.virtual_time import VirtualClock, one_core, outside_simulation
from docmind_lab.virtual_time.one_core import OneCore

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores"
)


def _cores_of_two_threads() -> list[set[int]]:
    """The cores of an actor and of a thread that it starts."""
    cores = [os.sched_getaffinity(0)]
    thread = threading.Thread(target=lambda: cores.append(os.sched_getaffinity(0)))
    thread.start()
    thread.join()
    return cores


def test_all_threads_of_a_run_are_on_one_core_of_the_callers() -> None:
    mine = os.sched_getaffinity(0)
    first, second = VirtualClock().run(_cores_of_two_threads)
    assert first == second
    assert len(first) == 1
    assert first < mine


def test_after_a_run_the_caller_has_its_cores_again_even_if_it_fails() -> None:
    mine = os.sched_getaffinity(0)
    VirtualClock().run(_cores_of_two_threads)
    with pytest.raises(ZeroDivisionError):
        VirtualClock().run(lambda: 1 / 0)
    assert os.sched_getaffinity(0) == mine


def test_a_core_that_has_no_time_for_them_is_left_by_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, seconds = os.sched_getaffinity(0), {"elapsed": 100.0, "used": 7.0}
    monkeypatch.setattr(one_core.time, "perf_counter", lambda: seconds["elapsed"])
    monkeypatch.setattr(one_core.time, "process_time", lambda: seconds["used"])
    over = threading.Event()
    with OneCore() as core:
        thread = threading.Thread(target=over.wait)
        thread.start()
        assert thread.native_id is not None
        seconds.update(elapsed=102.0, used=8.5)
        core.look([thread])
        kept = os.sched_getaffinity(thread.native_id)
        seconds.update(elapsed=104.0, used=9.5)
        core.look([thread])
        left = os.sched_getaffinity(thread.native_id), os.sched_getaffinity(0)
        over.set()
        thread.join()
    assert len(kept) == 1
    assert left == (mine, mine)


def test_a_run_that_leaves_its_core_does_so_with_the_thread_of_its_function(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, looked, look = os.sched_getaffinity(0), threading.Event(), OneCore.look

    def look_and_tell(core: OneCore, threads: Iterable[threading.Thread]) -> None:
        look(core, threads)
        looked.set()

    # No core has as much time as that, so the first look lets everybody go.
    monkeypatch.setattr(one_core, "_LEAST_SHARE", math.inf)
    monkeypatch.setattr(one_core, "_JUDGED_AFTER_S", 0.0)
    monkeypatch.setattr(OneCore, "look", look_and_tell)

    def function() -> list[set[int]]:
        with outside_simulation():
            # Whoever looks does so every quarter of a second.
            assert looked.wait(30.0)
        return _cores_of_two_threads()

    assert VirtualClock().run(function) == [mine, mine]


def test_where_cores_cannot_be_chosen_a_run_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread_id: int, cores: set[int]) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr("os.sched_setaffinity", refuse)
    mine = os.sched_getaffinity(0)
    assert VirtualClock().run(_cores_of_two_threads) == [mine, mine]
