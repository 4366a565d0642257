"""The summary of a comparison on a terminal, while its runs come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docmind_lab.cli.console import console
from docmind_lab.cli.printing import table_of

if TYPE_CHECKING:
    import pandas as pd


class GrowingTable:
    """The summary's table on a terminal, with the rows that are there so far; gone when it is closed."""

    def __init__(self) -> None:
        from rich.live import Live  # noqa: PLC0415 - only for a comparison on a terminal

        self._done = "starting"
        self._table: Any = ""
        self._live = Live(console=console(), transient=True, auto_refresh=False)
        self._live.start()
        self._draw()

    def show(self, done: int, total: int) -> None:
        """`done` of `total` runs are over."""
        self._done = f"{done} of {total} runs"
        self._draw()

    def watch(self, runs: pd.DataFrame) -> None:
        """The runs so far."""
        from docmind_lab.summary import summarise  # noqa: PLC0415

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
        from rich.console import Group  # noqa: PLC0415

        self._live.update(Group(f"measuring: {self._done}", self._table), refresh=True)
