"""Tables that come with the package: decision tables as their records print them, and what surveys measured.

    table = decision_table("ADR-056")
    table.recomputed()          # option, printed, recomputed, difference, agrees
    does_it_stop()              # a row for each way to set a timeout in other people's software

The numbers of decisions are in docmind_lab/core/data/decision_tables.json, with where they stand. Sums are made with
decimals: a total that does not agree disagrees on paper, and not in the last bit of a float.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import TypeAdapter

from docmind_lab.core.data import data_in
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.finding import Finding, MakesFinding

Matrix = np.ndarray[Any, np.dtype[np.float64]]

# Totals of scores with one decimal and weights in percent differ by 0.001 at least; a float's last bits are no tie.
_SAME_TOTAL: Final = 1e-9


@dataclass(frozen=True)
class DecisionOption:
    """One row of a decision table: a score of 0 to 10 for each criterion, and the printed total and decision.

    alternative: the level of the tables of a study that is this option; empty when a study has none.
    """

    name: str
    alternative: str
    scores: tuple[Decimal, ...]
    printed_total: Decimal
    printed_decision: str


@dataclass(frozen=True, repr=False)
class DecisionTable(MakesFinding):
    """Options judged by weighted criteria, as a record prints them.

    Args:
        name: Name of the record.
        title: Title of the record.
        citation: Place of the table in the record.
        weights_percent: Each criterion with its weight; they add up to 100.
        options: Rows of the table, in the order printed.
        measurable: The criterion that a study of deadlines can measure; empty when there is none.
    """

    name: str
    title: str
    citation: str
    weights_percent: Mapping[str, Decimal]
    options: tuple[DecisionOption, ...]
    measurable: str

    @property
    def criteria(self) -> tuple[str, ...]:
        """The names of the criteria, in the order of the weights."""
        return tuple(self.weights_percent)

    @property
    def weights(self) -> Matrix:
        """The weights of the criteria, shares of 1."""
        return np.array([float(percent) for percent in self.weights_percent.values()]) / 100

    @property
    def selected(self) -> str:
        """The name of the option that the record selects."""
        return next(option.name for option in self.options if option.printed_decision == "Selected")

    def matrix(self) -> Matrix:
        """Return the scores as floats, a row for each option and a column for each criterion."""
        return np.array([[float(score) for score in option.scores] for option in self.options])

    def recomputed(self) -> pd.DataFrame:
        """Compare the printed total of each option with the total of its scores; one row per option, as printed.

        Columns: option, printed, recomputed, difference (printed − recomputed), agrees (within half a unit of the last
        printed digit, which is all that rounding can explain), printed_rank, recomputed_rank (1 is the highest total).
        """
        rows = []
        for option in self.options:
            points = zip(self.weights_percent.values(), option.scores, strict=True)
            total = sum((percent / 100 * score for percent, score in points), Decimal(0))
            apart = option.printed_total - total
            agrees = abs(apart) <= _half_a_unit(option.printed_total)
            numbers = {"printed": float(option.printed_total), "recomputed": float(total), "difference": float(apart)}
            rows.append({"option": option.name, **numbers, "agrees": agrees})
        frame = pd.DataFrame(rows)
        for name in ("printed", "recomputed"):
            frame[f"{name}_rank"] = frame[name].rank(ascending=False, method="min").astype("int64")
        return frame

    def sentences(self) -> tuple[str, ...]:
        """Return in words which totals disagree, and whether the order of the options does."""
        frame = self.recomputed()
        lines = [
            f"{self.name} prints {row['printed']:g} for {row['option']}; its scores and weights give "
            f"{row['recomputed']:g}, {abs(row['difference']):g} {'less' if row['difference'] > 0 else 'more'}."
            for row in frame[~frame["agrees"]].to_dict("records")
        ]
        if not lines:
            return (f"All {len(frame)} printed totals of {self.name} follow from their scores and weights.",)
        same = (frame["printed_rank"] == frame["recomputed_rank"]).all()
        return (
            *lines,
            f"The order of its options is {'the same' if same else 'another one'} with the totals recomputed.",
        )

    def finding(self) -> Finding:
        """Return scores and totals, with the weights in the headings, and which totals disagree."""
        frame = pd.DataFrame({"option": [option.name for option in self.options]})
        for place, (name, percent) in enumerate(self.weights_percent.items()):
            frame[f"{name} ({percent:g} %)"] = [f"{option.scores[place]}" for option in self.options]
        frame["printed"] = [f"{option.printed_total}" for option in self.options]
        frame["recomputed"] = [f"{value:g}" for value in self.recomputed()["recomputed"]]
        words = (f"{self.name}: {self.title}", frame, self.sentences())
        return Finding(words, {"selected": self.selected}, {"totals": self.recomputed()})


@functools.cache
def decision_table(name: str) -> DecisionTable:
    """Return the table of the record "ADR-056" or "ADR-011".

    Args:
        name: Of the record.

    Raises:
        ConfigurationError: There is no such record.
    """
    tables = data_in("decision_tables.json")
    if name not in tables:
        raise ConfigurationError(f"table must be one of {', '.join(tables)}, not {name!r}")
    return TypeAdapter(DecisionTable).validate_python({"name": name, **tables[name]})


def _half_a_unit(printed: Decimal) -> Decimal:
    exponent = printed.as_tuple().exponent
    assert isinstance(exponent, int)  # only NaN and infinity have another
    return Decimal(5).scaleb(exponent - 1)


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


def _packages_in(path: Path) -> set[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read ({error})") from error
    names: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition(" #")[0].rstrip("\\ ").strip()
        if further := re.match(r"(?:-r|--requirement)[ =]*(.+)", entry):
            names |= _packages_in(path.parent / further[1])
        elif entry and not entry.startswith(("#", "-")):
            try:
                names.add(canonicalize_name(Requirement(entry).name))
            except InvalidRequirement as error:
                raise ConfigurationError(
                    f"{path}, line {number}: {entry!r} is no requirement; `pip freeze` writes one a line"
                ) from error
    return names
