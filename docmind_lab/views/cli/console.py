"""What the commands share: settings, a console, a progress bar, and values that JSON can hold."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from docmind_lab.core.settings import Settings
    from docmind_lab.findings.finding import Finding

INTERRUPTED = 130
# Not a terminal (a file, a pipe, CI): wide enough that no column of a table is cut.
_WIDTH = 144
# How often a progress bar is drawn anew while nothing is done: on a terminal, and in a log, where each is a line.
_TICK_S, _LOG_TICK_S = 1.0, 30.0


def load_settings() -> Settings:
    """Return the settings of the environment, and set the log level they name. Raises: ConfigurationError."""
    from docmind_lab.core.settings import Settings

    settings = Settings()
    logging.basicConfig(level=settings.log_level, stream=sys.stderr)
    return settings


def console() -> Console:
    """Return a console on standard output."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)


def print_finding(finding: Finding, *, as_json: bool, is_wrapped: bool = False) -> None:
    """Print a finding: its words and tables, or JSON and nothing else.

    is_wrapped: whether paragraphs and lists end at the edge of the screen.
    """
    if as_json:
        typer.echo(json.dumps(json_safe(finding.as_json()), indent=2))
    else:
        out = console()
        out.print(finding.text(out.width if is_wrapped else None), markup=False, soft_wrap=True)


class ProgressBar:
    """A progress bar on standard error, with a count in a unit and a word for the activity.

    shown: False draws nothing. form: format of the line, as tqdm's `bar_format`; None for tqdm's own.
    """

    def __init__(self, unit: str, doing: str, *, shown: bool, form: str | None = None) -> None:
        from tqdm.std import tqdm

        tqdm.monitor_interval = 0  # no thread of its own

        class Bar(tqdm):  # type: ignore[misc]
            """A bar with its own lock: a Ctrl-C may leave the lock held, and searches use tqdm's common one."""

        Bar.set_lock(threading.RLock())
        # In a log every refresh is a line: seldom there, and smooth on a terminal.
        refresh_s = 0.1 if sys.stderr.isatty() else 5.0
        style: dict[str, Any] = {
            "dynamic_ncols": True,
            "mininterval": refresh_s,
            "desc": "starting",
            "bar_format": form,
        }
        self._bar = Bar(total=0, unit=f" {unit}", disable=not shown, leave=False, **style)
        self._doing = doing
        self.done = 0
        self._is_hidden = False
        self._closed = threading.Event()
        self._ticking = threading.Thread(target=self._tick, name="docmind-progress", daemon=True)
        if shown:
            self._ticking.start()

    def _tick(self) -> None:
        # A first part may take long, and somebody who waits wants to see that time passes.
        while not self._closed.wait(_TICK_S if sys.stderr.isatty() else _LOG_TICK_S):
            if not self._is_hidden:
                self._bar.refresh()

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Leave the screen to a question during a block."""
        self._is_hidden = True
        self._bar.clear()
        try:
            yield
        finally:
            self._is_hidden = False

    def show(self, done: int, total: int, name: str = "") -> None:
        """Show that `done` of `total` parts are done. name: the part that comes next."""
        self.done = done
        self._bar.total = total
        self._bar.set_description(self._doing, refresh=False)
        self._bar.set_postfix_str(name, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Remove the bar from the screen."""
        self._closed.set()
        if self._ticking.is_alive():
            self._ticking.join(_TICK_S)
        self._bar.close()


@contextlib.contextmanager
def starting(*, shown: bool) -> Iterator[None]:
    """Show that time passes during a block that imports the stack, which takes seconds."""
    bar = ProgressBar("parts", "starting", shown=shown and sys.stderr.isatty(), form="{desc} {elapsed}")
    try:
        yield
    finally:
        bar.close()


@contextlib.contextmanager
def prints_on_stderr(*, on_terminal: bool = False) -> Iterator[None]:
    """Have what a user's code prints appear on standard error, in worker processes that are started inside too.

    Standard output holds the report then, and nothing else. on_terminal: also where both are one screen.
    """
    if sys.stdout.isatty() and not on_terminal:
        yield
        return
    sys.stdout.flush()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        # Not under a test that has put something else in the place of the streams.
        with contextlib.suppress(OSError):
            stdout = os.dup(1)
            os.dup2(2, 1)
            stack.callback(os.close, stdout)
            stack.callback(os.dup2, stdout, 1)
        yield


@contextlib.contextmanager
def showing_progress(unit: str, doing: str, *, as_json: bool) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar during a block that runs a user's code, and give what is called with (done, all).

    as_json: whether standard output holds JSON and nothing else, so that no bar is drawn.
    """
    bar = ProgressBar(unit, doing, shown=not as_json)
    try:
        with prints_on_stderr(on_terminal=as_json):
            yield bar.show
    finally:
        bar.close()


def json_safe(value: Any) -> Any:
    """Return the value with types that JSON has: NaN becomes null, a tuple a list."""
    if isinstance(value, Mapping):
        return {str(name): json_safe(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
