"""The summary of a comparison on a terminal, while its runs come in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from docmind_lab.interfaces.cli.console import console
from docmind_lab.interfaces.cli.printing import table_of

if TYPE_CHECKING:
    import pandas as pd


class GrowingTable:
    """The summary's table on a terminal, with the rows that are there so far; gone when it is closed."""

    def __init__(self) -> None:
        from rich.live import Live  # noqa: PLC0415 - only for a comparison on a terminal

        self.done, self._total = 0, 0
        self._began_at = time.monotonic()
        self._table: Any = ""
        # Drawn anew each second, so that somebody who waits for the first runs sees that time passes.
        self._live = Live(get_renderable=self._drawn, console=console(), transient=True, refresh_per_second=1)
        self._live.start()
        self._draw()

    def show(self, done: int, total: int) -> None:
        """`done` of `total` runs are over."""
        self.done, self._total = done, total
        self._draw()

    def watch(self, runs: pd.DataFrame) -> None:
        """The runs so far."""
        from docmind_lab.analysis.summary import summarise  # noqa: PLC0415

        self._table, _ = table_of(summarise(runs, {}).short_table()[0], self._live.console.width)
        self._draw()

    def pause(self) -> None:
        """Take it off the screen for a while."""
        self._live.stop()

    def go_on(self) -> None:
        """Put it back."""
        self._live.start()

    def close(self) -> None:
        """Take it off the screen."""
        self._live.stop()

    def _draw(self) -> None:
        self._live.refresh()

    def _drawn(self) -> Any:
        from rich.console import Group  # noqa: PLC0415

        return Group(f"measuring: {self._progress()}", self._table)

    def _progress(self) -> str:
        elapsed_s = time.monotonic() - self._began_at
        if not self.done:
            return f"starting, {elapsed_s:.0f} s"
        left_s = elapsed_s / self.done * (self._total - self.done)
        return f"{self.done} of {self._total} runs, {elapsed_s:.0f} s, about {left_s:.0f} s left"
