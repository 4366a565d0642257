"""Progress of calls that take long, and what they return when somebody interrupts them."""

from __future__ import annotations

import io
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from often import often

import docmind_lab as dl
from docmind_lab.core import progress as module
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.progress import Interrupted, Progress, ProgressBar, shows_progress
from docmind_lab.findings import study as studies


class Screen(io.StringIO):
    """Standard error on a terminal, which says when something was drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if text.strip():
            self.drawn.set()
        return written

    def isatty(self) -> bool:
        return True


def a_screen(monkeypatch: pytest.MonkeyPatch, delay_s: float = 0.001) -> Screen:
    """A screen that is drawn on soon; made in a test's body, since pytest's own stands there before."""
    made = Screen()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(module, "_in_notebook", lambda: False)
    monkeypatch.setattr(module, "_DELAY_S", delay_s)
    monkeypatch.setattr(module, "_TICK_S", 0.001)
    return made


def drawing_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "docmind-progress"]


def test_a_bar_is_drawn_while_nothing_is_done_and_leaves_no_line_and_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch)
    bar = ProgressBar("runs", "measuring", is_shown=True)
    assert screen.drawn.wait(30.0)
    screen.drawn.clear()
    bar.show(3, 4)
    while "3/4 runs [" not in screen.getvalue():
        assert screen.drawn.wait(30.0)
    bar.close()
    assert screen.getvalue().rpartition("\r")[0].rpartition("\r")[2].strip() == "", "the line is cleared"
    assert (bar.done, drawing_threads()) == (3, [])


def test_no_time_is_negative_where_a_second_part_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch)
    bar = ProgressBar("runs", "measuring", is_shown=True)
    for done, total in ((60, 100), (70, 200), (5, 300)):
        bar.show(done, total)
        while f"{done}/{total}" not in screen.getvalue():
            screen.drawn.clear()
            assert screen.drawn.wait(30.0)
    bar.close()
    assert "-" not in screen.getvalue()


@pytest.mark.parametrize("shown", [True, False])
def test_a_call_that_is_over_soon_draws_nothing(shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = a_screen(monkeypatch, delay_s=60.0)
    ProgressBar("runs", "measuring", is_shown=shown).close()
    assert (screen.getvalue(), drawing_threads()) == ("", [])


@dataclass(frozen=True)
class Made:
    """What a call returns. interrupted: how many parts of how many are in it, after an interrupt."""

    interrupted: str = ""


@shows_progress("runs")
def call(end: Callable[[], Made], *, progress: Progress | None = None) -> Made:
    assert progress is not None
    progress(1, 2)
    return end()


def raising(error: BaseException) -> Callable[[], Made]:
    def end() -> Made:
        raise error

    return end


def test_an_interrupted_call_returns_what_is_finished_with_one_line_or_raises_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen = a_screen(monkeypatch, delay_s=60.0)
    seen: list[tuple[int, int]] = []
    part = Made("1 of 2 runs")
    assert (call(Made), screen.getvalue()) == (Made(), "")
    assert call(lambda: part) is part
    assert screen.getvalue() == "Interrupted: 1 of 2 runs are finished\n"
    assert call(lambda: part, progress=lambda *now: seen.append(now)) is part
    assert (screen.getvalue().count("\n"), seen) == (1, [(1, 2)]), "who shows the progress says the line too"
    for error in (KeyboardInterrupt(), Interrupted("no run was finished")):
        with pytest.raises(Interrupted) as raised:
            call(raising(error))
        (line,) = raised.value._render_traceback_()
        assert line == f"Interrupted: {raised.value}"
        assert raised.value.__suppress_context__ or raised.value is error
    assert drawing_threads() == []


class Nap(TypedDict, total=False):
    naps: int


class Sleeper:
    """A graph that is interrupted, as by a Ctrl-C, when one of its nodes is entered for the n-th time."""

    def __init__(self) -> None:
        self.entered, self.interrupt_at = 0, 0
        builder = StateGraph(Nap)
        builder.add_node("nap", self.nap)
        builder.add_node("again", self.nap)
        builder.add_edge(START, "nap")
        builder.add_edge("nap", "again")
        builder.add_edge("again", END)
        self.system = dl.graph(builder.compile(name="sleeper"), [{"naps": 0}, {"naps": 1}, {"naps": 2}])

    def nap(self, state: Nap) -> Nap:
        self.entered += 1
        if self.entered == self.interrupt_at:
            signal.raise_signal(signal.SIGINT)
        time.sleep(4.0)
        return {"naps": state["naps"] + 1}


CALLS: dict[str, Callable[[dl.Graph], Any]] = {
    "compare": lambda system: dl.compare(system, 6, alternatives="A,B", runs=10),
    "sweep": lambda system: dl.sweep(system, {"alternatives": "A,B", "decision_timeout_s": [6, 9]}, runs=5),
    "recommend": lambda system: dl.recommend(system, 0.5, runs=10),
    "doctor": lambda system: dl.doctor(system, 6, alternatives="A,B,C"),
    "crash_test": lambda system: dl.crash_test(system, alternatives="A,kill"),
}


@pytest.mark.parametrize("name", often(CALLS, "compare", "sweep", "recommend"))
def test_interrupted_it_returns_the_finished_part_and_the_next_call_is_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper, called = Sleeper(), CALLS[name]
    whole = called(sleeper.system)
    entered, threads = sleeper.entered, threading.active_count()
    assert whole.interrupted == ""
    sleeper.entered, sleeper.interrupt_at = 0, round(0.8 * entered)
    part = called(sleeper.system)
    done, of = map(int, part.interrupted.split()[:3:2])
    assert 0 < done < of
    assert repr(part).startswith(f"Interrupted, with {part.interrupted}. ")
    assert f"with {part.interrupted}" in part._repr_html_()
    if name in ("compare", "sweep"):
        last = dl.last_study()
        assert (len(last.runs), last.interrupted) == (done, part.interrupted)
        assert last.report().startswith(f"## Interrupted, with {part.interrupted}. ")
    sleeper.entered, sleeper.interrupt_at = 0, 1
    with pytest.raises(KeyboardInterrupt, match=r"^(no|nothing) "):
        called(sleeper.system)
    sleeper.entered, sleeper.interrupt_at = 0, 0
    # But for the CPU time of a run.
    assert repr(called(sleeper.system)).splitlines()[:3] == repr(whole).splitlines()[:3]
    assert threading.active_count() == threads
    monkeypatch.setattr(studies, "_LAST", [])
    with pytest.raises(ConfigurationError, match="no study was made in this process"):
        dl.last_study()
