"""Tables that a workload has beside the three, and whose workloads may be imported for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from docmind_lab.analysis.tables.columns import Column

ELSEWHERE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""How a workload of another package is named: "module:ATTRIBUTE"."""


@dataclass(frozen=True)
class ExtraTable:
    """A table that a workload has beside the three.

    columns: in order. derive: (events, runs, calls) of a study → the table's frame, from these alone.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    derive: Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]


def not_imported(names: Iterable[str], trusted: Collection[str] | None) -> tuple[str, ...]:
    """The workloads of other packages whose modules may not be imported, in order.

    Importing a module runs its code, and the names come from data, such as a manifest.

    Args:
        names: Workloads, as a manifest names them.
        trusted: Workloads of other packages that may be imported; None for all.
    """
    if trusted is None:
        return ()
    return tuple(name for name in names if ELSEWHERE.fullmatch(name) and name not in trusted)
