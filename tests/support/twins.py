"""A graph with a planted defect, and its corrected twin."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Twins:
    """A defect and its correction.

    invariant: which one the defect breaks. inputs: what both graphs are given. graph: builds the graph; called with
    whether it is the corrected one.
    """

    invariant: str
    inputs: list[Any]
    graph: Callable[[bool], Any]

    @property
    def broken(self) -> Callable[[], Any]:
        """A function, since the crash test calls one anew for each trial."""
        return lambda: self.graph(False)

    @property
    def mended(self) -> Callable[[], Any]:
        return lambda: self.graph(True)


def twins(invariant: str, *inputs: Any) -> Callable[[Callable[[bool], Any]], Twins]:
    """Return a decorator that makes twins of the function that builds them."""
    return lambda graph: Twins(invariant, list(inputs), graph)
