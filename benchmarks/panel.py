"""The panel: how soon it answers a move, and how long 160 runs take, new and known."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, sampled
from docmind_lab.views.panels import TunePanel, tune

MOVES = 24
RUNS_OF_EACH = 40  # of four alternatives
FIRST_FRAME_S, ALL_RUNS_S = 0.2, 15.0
# Unpacking a run takes two thousandths of a second, and the picture of all of them half a one.
KNOWN_S = 2.0
_PATIENCE_S = 600.0


def run() -> Iterator[Figure]:
    """The figures. Processes are warm, and the corpus indexed, before anything is timed."""
    panel = tune(runs=1)
    try:
        panel.wait(_PATIENCE_S)
        yield _timed("160 runs, new, s", lambda: _set(panel, runs=RUNS_OF_EACH), panel, ALL_RUNS_S)
        _set(panel, decision_timeout_s=8.0)
        panel.stop()
        panel.wait(_PATIENCE_S)
        yield _timed("160 runs, known, s", lambda: _set(panel, decision_timeout_s=20.0), panel, KNOWN_S)
        marked, drawn = _moves(panel)
        yield sampled("a move to its first frame, s", marked, at_most=FIRST_FRAME_S)
        yield sampled("a move to its first new runs, drawn, s", drawn)
    finally:
        panel.close()
    yield from _in_a_browser()


def _timed(what: str, change: Callable[[], None], panel: TunePanel, at_most: float) -> Figure:
    began_s = time.perf_counter()
    change()
    panel.wait(_PATIENCE_S)
    return Figure(what, time.perf_counter() - began_s, at_most=at_most)


def _set(panel: TunePanel, **values: Any) -> None:
    for name, value in values.items():
        setattr(panel, name, value)


def _moves(panel: TunePanel) -> tuple[list[float], list[float]]:
    """Seconds from a move to the mark in the picture, and to the first picture of runs at the new timeout.

    Each move comes while the runs of the one before are under way, as they do when a slider is dragged.
    """
    marked, drawn = [], []
    for move in range(MOVES):
        began_s = time.perf_counter()
        panel.decision_timeout_s = 10.0 + 0.5 * move
        assert panel.note
        marked.append(time.perf_counter() - began_s)
        while panel.note:
            time.sleep(0.005)
        drawn.append(time.perf_counter() - began_s)
    panel.stop()
    panel.wait(_PATIENCE_S)
    return marked, drawn


_CELL = "from docmind_lab.views.panels import tune\npanel = tune(runs=4)\npanel"
# In the page: from the press of the key to the first change of the picture.
_WATCH = """() => {
  window.frames_s = [];
  const tab = document.querySelector('.docmind-panel .shown');
  let pressed_at = null;
  document.addEventListener('keydown', () => { pressed_at = performance.now(); }, true);
  new MutationObserver(() => {
    if (pressed_at === null) return;
    const began = pressed_at;
    pressed_at = null;
    requestAnimationFrame(() => window.frames_s.push((performance.now() - began) / 1000));
  }).observe(tab, { subtree: true, childList: true });
}"""


def _in_a_browser() -> Iterator[Figure]:
    """The same move by keyboard in JupyterLab, where there is a browser and the tests' way to open it."""
    try:
        from tests.support.lab_in_browser import chromium, opened, write_notebook
    except ImportError:
        return
    if chromium() is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        write_notebook(Path(folder) / "panel.ipynb", _CELL)
        with opened(Path(folder), "panel.ipynb") as found:
            found.page.click(".jp-Notebook .cm-content")
            found.page.keyboard.press("Shift+Enter")
            found.until_status("complete, 16 of 16 runs")
            found.page.wait_for_selector(".docmind-panel figure svg")
            found.page.evaluate(_WATCH)
            found.page.focus(".docmind-panel input[type=range]")
            for move in range(MOVES):
                found.page.keyboard.press("ArrowRight" if move % 2 else "ArrowLeft")
                found.until("count => window.frames_s.length > count", move)
            yield sampled(
                "in a browser: a key to its first frame, s",
                found.page.evaluate("window.frames_s"),
                at_most=FIRST_FRAME_S,
            )
