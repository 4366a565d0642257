"""Tables that come with the package: the decision table of ADR-056, and what surveys measured.

    decision_table().matrix()   # a row for each option and a column for each criterion
    does_it_stop()              # a row for each way to set a timeout in other people's software

The numbers of the decision are in docmind_lab/core/data/decision_tables.json, with where they stand.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import TypeAdapter

from docmind_lab.core.data import data_in
from docmind_lab.core.errors import ConfigurationError

Matrix = np.ndarray[Any, np.dtype[np.float64]]

_RECORD: Final = "ADR-056"
# Totals of scores with one decimal and weights in percent differ by 0.001 at least; a float's last bits are no tie.
_SAME_TOTAL: Final = 1e-9


@dataclass(frozen=True)
class DecisionOption:
    """One row of a decision table: an alternative, and its score of 0 to 10 for each criterion."""

    alternative: str
    scores: tuple[float, ...]


@dataclass(frozen=True)
class DecisionTable:
    """Options judged by weighted criteria, as a record prints them.

    name: that of the record. weights_percent: each criterion with its weight; they add up to 100. options: rows of the
    table, in the order printed. measurable: the criterion that a study of deadlines can measure.
    """

    name: str
    weights_percent: Mapping[str, float]
    options: tuple[DecisionOption, ...]
    measurable: str

    @property
    def criteria(self) -> tuple[str, ...]:
        """The names of the criteria, in the order of the weights."""
        return tuple(self.weights_percent)

    @property
    def weights(self) -> Matrix:
        """The weights of the criteria, shares of 1."""
        return np.array([*self.weights_percent.values()]) / 100

    def matrix(self) -> Matrix:
        """Return the scores, a row for each option and a column for each criterion."""
        return np.array([option.scores for option in self.options])


@functools.cache
def decision_table() -> DecisionTable:
    """Return the table of ADR-056."""
    table = data_in("decision_tables.json")[_RECORD]
    return TypeAdapter(DecisionTable).validate_python({"name": _RECORD, **table})


def winner_of(totals: Matrix) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the option with the highest total, −1 for a tie. totals: options on the last axis."""
    first = totals >= totals.max(axis=-1, keepdims=True) - _SAME_TOTAL
    return np.where(first.sum(axis=-1) == 1, first.argmax(axis=-1), -1)


def does_it_stop(requirements: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Return what was measured of other people's software whose timeout fires, or whose client leaves.

    Args:
        requirements: A requirements file; only cells of the packages in it, and in the files that it names by -r, are
            returned. None for all cells.

    Returns: A row for each cell: what it is of (`kind`, `name`, `package`, `version`), the `way` to set the timeout and
        `whose` it is, what it `falls_into`, the worst `mark` of its `runs`, `late_s` and `work_s` in seconds, and the
        `command` that repeats it. docs/does-it-stop.md explains the marks; the licence of the data is CC BY 4.0.

    Raises: ConfigurationError for a file that cannot be read, or a line of it that is no requirement.
    """
    file = data_in("does_it_stop.json")
    cells = pd.DataFrame(file["cells"])
    cells.attrs = {name: file[name] for name in ("version", "licence", "attribution")}
    if requirements is None:
        return cells
    names = {_PARTS.get(name, name) for name in _packages_in(Path(requirements))}
    # By the name of what was measured too: pydantic-ai installs pydantic-ai-slim, which has the agent.
    package, name = (
        cells[each].str.replace(" ", "-").map(canonicalize_name).isin(names) for each in ("package", "name")
    )
    return cells[package | name].reset_index(drop=True)


# Packages that install what was measured under another name.
_PARTS: Final = {"llama-index": "llama-index-core"}


def _packages_in(path: Path, within: frozenset[Path] = frozenset()) -> set[str]:
    """Return the names in a file of requirements. within: the files that led to it, which are not read again."""
    if (here := path.resolve()) in within:
        return set()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read ({error})") from error
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition(" #")[0].rstrip("\\ ").strip()
        if further := re.match(r"(?:-r|--requirement)[ =]*(.+)", entry):
            names |= _packages_in(path.parent / further[1], within | {here})
        elif entry and not entry.startswith(("#", "-")):
            try:
                names.add(canonicalize_name(Requirement(entry).name))
            except InvalidRequirement as error:
                raise ConfigurationError(
                    f"{path}, line {number}: {entry!r} is no requirement; `pip freeze` writes one a line"
                ) from error
    return names
