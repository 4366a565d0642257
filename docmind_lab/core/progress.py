"""A progress bar for a call that takes long, and what becomes of the call when somebody interrupts it.

@shows_progress("runs")
def compare(…, *, progress: Progress | None = None) -> Study: ...
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast

Progress = Callable[[int, int], None]
"""Called with (done, all)."""

Function = TypeVar("Function", bound=Callable[..., Any])

# A call that is over by then shows nothing.
_DELAY_S: Final = 2.0
# How often a bar is drawn: on a screen, and in a log, where each is a line.
_TICK_S, _LOG_TICK_S = 0.5, 10.0
# What is drawn while it is not known how many parts there are.
_UNCOUNTED: Final = "{desc} [{elapsed}]"


class Interrupted(KeyboardInterrupt):
    """A call was interrupted before any part of it was finished."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows this in place of a traceback, in which nobody would look for anything.
        return [f"{type(self).__name__}: {self}"]


def shows_progress(unit: str, activity: str = "measuring") -> Callable[[Function], Function]:
    """Return a decorator that draws a progress bar while a function runs, unless its caller passes `progress`.

    The parameters are those of `ProgressBar`. Ctrl-C prints one line and no traceback. A function that then returns
    what it has finished says how many parts in its result's attribute `interrupted`; any other raises `Interrupted`.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            draws_bar = keywords.get("progress") is None
            bar = ProgressBar(unit, activity, is_shown=draws_bar and (_in_notebook() or sys.stderr.isatty()))
            if draws_bar:
                keywords["progress"] = bar.show
            try:
                with contextlib.closing(bar):
                    result = function(*arguments, **keywords)
            except Interrupted:
                raise
            except KeyboardInterrupt:
                raise Interrupted("nothing is kept of it") from None
            if draws_bar and (finished := getattr(result, "interrupted", "")):
                sys.stderr.write(f"Interrupted: {finished} are finished\n")
            return result

        return cast(Function, call)

    return decorate


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


class ProgressBar:
    """A progress bar in a notebook or on standard error, with a count in a unit and a word for the activity.

    A thread of its own draws it from the third second on, also while nothing is done, and removes it at the end: an
    interrupt cannot leave a line that is half drawn, or a lock that is held.

    Args:
        unit: What is counted, as "runs".
        activity: A word for what happens to them, as "measuring".
        is_shown: Whether anything is drawn.
    """

    def __init__(self, unit: str, activity: str, *, is_shown: bool) -> None:
        self.done, self._total, self._name, self._activity = 0, 0, "", activity
        # The parts that were done before the count began, which the remaining time leaves out, and when it began.
        self._first = (0, time.time())
        self._counted = f"{{l_bar}}{{bar}}| {{n_fmt}}/{{total_fmt}} {unit} [{{elapsed}}<{{remaining}}{{postfix}}]"
        self._style = {"bar_format": _UNCOUNTED, "desc": "starting", "total": 0, "leave": False}
        self._is_hidden = False
        self._closed = threading.Event()
        self._bar: Any = None
        self._clear_widget: Callable[[], object] = lambda: None
        # In a notebook a display belongs to the cell, which the context says.
        draw = functools.partial(contextvars.copy_context().run, self._draw_until_closed)
        self._drawing = threading.Thread(target=draw, name="docmind-progress", daemon=True)
        if is_shown:
            self._drawing.start()

    def show(self, done: int, total: int, name: str = "") -> None:
        """Show that `done` of `total` parts are done. name: the part that comes next."""
        if total != self._total:
            self._first = (done, time.time())
        self.done, self._total, self._name = done, total, name

    @contextlib.contextmanager
    def hide(self) -> Iterator[None]:
        """Leave the screen to a question during a block."""
        self._is_hidden = True
        if self._bar is not None:
            self._bar.clear()
        try:
            yield
        finally:
            self._is_hidden = False

    def close(self) -> None:
        """Remove the bar from the screen."""
        self._closed.set()
        if self._drawing.is_alive():
            self._drawing.join()

    def _draw_until_closed(self) -> None:
        is_screen = _in_notebook() or sys.stderr.isatty()
        wait_s = _DELAY_S
        while not self._closed.wait(wait_s):
            if not self._is_hidden:
                self._draw()
            wait_s = _TICK_S if is_screen else _LOG_TICK_S
        if self._bar is not None:
            # A bar that is not full would stay, in red.
            self._bar.total = self._bar.n
            self._bar.close()
            self._clear_widget()

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = self._new_bar()
        bar, done, total = self._bar, self.done, self._total
        if bar.total != total:
            # It is drawn here, with nothing done: from what was there before, the remaining time would be negative.
            bar.initial = 0
            bar.reset(total=total)
        (bar.initial, bar.start_t), bar.n = self._first, done
        bar.bar_format = self._counted if total else _UNCOUNTED
        bar.set_description_str(self._activity if total else "starting", refresh=False)
        bar.set_postfix_str(self._name, refresh=False)
        bar.refresh()

    def _new_bar(self) -> Any:
        """Return the bar, shown, and with nothing done."""
        from tqdm.auto import tqdm  # noqa: PLC0415 - only where it is drawn; imports widgets in a notebook
        from tqdm.std import tqdm as plain  # noqa: PLC0415 - as above

        class Bar(tqdm):  # type: ignore[misc]
            """A bar with its own lock: searches use tqdm's common one."""

            monitor_interval = 0  # no further thread

        Bar.set_lock(threading.RLock())
        if tqdm.display is plain.display:
            return Bar(dynamic_ncols=True, **self._style)
        from IPython.display import display  # noqa: PLC0415 - as above

        bar = Bar(display=False, **self._style)
        shown = display(bar.container, display_id=True)  # type: ignore[no-untyped-call]
        # A widget that is closed leaves its text in the notebook's file.
        self._clear_widget = functools.partial(shown.update, {"text/plain": ""}, raw=True)
        return bar
