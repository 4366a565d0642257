"""What the commands share: settings, a console, how progress is shown, and values that JSON can hold."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from docmind_lab.core.progress import ProgressBar

if TYPE_CHECKING:
    from rich.console import Console

    from docmind_lab.core.settings import Settings
    from docmind_lab.findings.finding import Finding

INTERRUPTED = 130
Made = TypeVar("Made")
# Not a terminal (a file, a pipe, CI): wide enough that no column of a table is cut.
_WIDTH = 144


def load_settings() -> Settings:
    """Return the settings of the environment, and set the log level they name. Raises: ConfigurationError."""
    from docmind_lab.core.settings import Settings

    settings = Settings()
    logging.basicConfig(level=settings.log_level, stream=sys.stderr)
    return settings


def console() -> Console:
    """Return a console on standard output."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else _WIDTH)


def print_finding(finding: Finding, *, as_json: bool, is_wrapped: bool = False) -> None:
    """Print a finding: its words and tables, or JSON and nothing else.

    is_wrapped: whether paragraphs and lists end at the edge of the screen.
    """
    if as_json:
        typer.echo(json.dumps(json_safe(finding.as_json()), indent=2))
    else:
        out = console()
        out.print(finding.text(out.width if is_wrapped else None), soft_wrap=True)


@contextlib.contextmanager
def starting(*, is_shown: bool) -> Iterator[None]:
    """Show that time passes during a block that imports the stack, which takes seconds."""
    bar = ProgressBar("parts", "starting", is_shown=is_shown and sys.stderr.isatty())
    with contextlib.closing(bar):
        yield


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
def showing_progress(
    unit: str, activity: str, *, as_json: bool, when_interrupted: Callable[[int], str] | None = None
) -> Iterator[ProgressBar]:
    """Show a progress bar during a block that runs a user's code, and give the bar.

    as_json: whether standard output holds JSON and nothing else, so that no bar is drawn. when_interrupted: what is
    said of so many finished parts when the block is interrupted.
    Raises: typer.Exit where that was said.
    """
    bar = ProgressBar(unit, activity, is_shown=not as_json)
    try:
        with prints_on_stderr(on_terminal=as_json):
            yield bar
    except KeyboardInterrupt:
        if when_interrupted is None:
            raise
        bar.close()
        typer.echo(f"docmind-lab: interrupted{when_interrupted(bar.done)}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.close()


def whole(made: Made) -> Made:
    """Return what a call made. Raises: KeyboardInterrupt when it is a part, since the call was interrupted."""
    if getattr(made, "interrupted", ""):
        raise KeyboardInterrupt
    return made


def json_safe(value: Any) -> Any:
    """Return the value with types that JSON has: NaN becomes null, a tuple a list."""
    if isinstance(value, Mapping):
        return {str(name): json_safe(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
