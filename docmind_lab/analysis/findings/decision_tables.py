"""Decision tables as their records print them, and whether their totals add up.

    table = decision_table("ADR-056")
    table.recomputed()          # option, printed, recomputed, difference, agrees

The numbers are in docmind_lab/data/decision_tables.json, with where they stand. Sums are made with decimals: a total
that does not agree disagrees on paper, and not in the last bit of a float.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.analysis.page import Page, Shown
from docmind_lab.core.errors import ConfigurationError

_FILE = "decision_tables.json"


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
class DecisionTable(Shown):
    """Options judged by weighted criteria, as a record prints them.

    Args:
        name: Name of the record.
        title: Title of the record.
        citation: Place of the table in the record.
        criteria: Names of the criteria, in the order of the weights.
        weights: Shares of 1, one for each criterion.
        options: Rows of the table, in the order printed.
        measurable: The criterion that a study of deadlines can measure; empty when there is none.
        threshold: The total that the record asks of an option; None when it asks for none.
    """

    name: str
    title: str
    citation: str
    criteria: tuple[str, ...]
    weights: tuple[Decimal, ...]
    options: tuple[DecisionOption, ...]
    measurable: str
    threshold: Decimal | None

    def recomputed(self) -> pd.DataFrame:
        """Compare the printed total of each option with the total of its scores; one row per option, as printed.

        Columns: option, printed, recomputed, difference (printed − recomputed), agrees (within half a unit of the last
        printed digit, which is all that rounding can explain), printed_rank, recomputed_rank (1 is the highest total).
        """
        totals = [sum(w * s for w, s in zip(self.weights, o.scores, strict=True)) for o in self.options]
        printed = [option.printed_total for option in self.options]
        apart = [Decimal(p) - Decimal(t) for p, t in zip(printed, totals, strict=True)]
        frame = pd.DataFrame(
            {
                "option": [option.name for option in self.options],
                "printed": [float(value) for value in printed],
                "recomputed": [float(value) for value in totals],
                "difference": [float(value) for value in apart],
                "agrees": [abs(a) <= _half_a_unit(p) for a, p in zip(apart, printed, strict=True)],
            }
        )
        for name in ("printed", "recomputed"):
            frame[f"{name}_rank"] = frame[name].rank(ascending=False, method="min").astype("int64")
        return frame

    def sentences(self) -> tuple[str, ...]:
        """Return in words which totals disagree, and whether the order of the options does."""
        frame = self.recomputed()
        wrong = frame[~frame["agrees"]]
        lines = [
            f"{self.name} prints {row['printed']:g} for {row['option']}; its scores and weights give "
            f"{row['recomputed']:g}, {abs(row['difference']):g} {'less' if row['difference'] > 0 else 'more'}."
            for _, row in wrong.iterrows()
        ]
        if wrong.empty:
            return (f"All {len(frame)} printed totals of {self.name} follow from their scores and weights.",)
        same = (frame["printed_rank"] == frame["recomputed_rank"]).all()
        lines.append(f"The order of its options is {'the same' if same else 'another one'} with the totals recomputed.")
        return tuple(lines)

    def page(self) -> Page:
        """Return scores and totals, and which totals disagree."""
        return Page(f"{self.name}: {self.title}", (self._display_frame(), self.sentences()))

    def _display_frame(self) -> pd.DataFrame:
        """Return scores, printed and recomputed totals for display, with the weights in the headings."""
        scores = {
            f"{name} ({float(100 * weight):g} %)": [f"{option.scores[place]}" for option in self.options]
            for place, (name, weight) in enumerate(zip(self.criteria, self.weights, strict=True))
        }
        frame = self.recomputed()
        totals = {"printed": [f"{option.printed_total}" for option in self.options]}
        recomputed = {"recomputed": [f"{value:g}" for value in frame["recomputed"]]}
        return pd.DataFrame({"option": frame["option"], **scores, **totals, **recomputed})

    def matrix(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the scores as floats, a row for each option and a column for each criterion."""
        return np.array([[float(score) for score in option.scores] for option in self.options])

    def shares(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the weights of the criteria as floats, shares of 1."""
        return np.array([float(weight) for weight in self.weights])

    @property
    def place(self) -> int:
        """The column of the criterion that is measured."""
        return self.criteria.index(self.measurable)

    @property
    def selected(self) -> str:
        """The name of the option that the record selects."""
        return next(option.name for option in self.options if option.printed_decision == "Selected")


def decision_table(name: str) -> DecisionTable:
    """Return the table of the record "ADR-056" or "ADR-011". Raises: ConfigurationError for another name."""
    tables = _tables()
    if name not in tables:
        raise ConfigurationError(f"table must be one of {', '.join(tables)}, not {name!r}")
    return tables[name]


@functools.cache
def _tables() -> Mapping[str, DecisionTable]:
    file = importlib.resources.files("docmind_lab.core.data").joinpath(_FILE)
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return {name: _parse(name, entry) for name, entry in content.items()}


def _parse(name: str, entry: Mapping[str, Any]) -> DecisionTable:
    return DecisionTable(
        name=name,
        title=entry["title"],
        citation=entry["citation"],
        criteria=tuple(entry["weights_percent"]),
        weights=tuple(Decimal(percent) / 100 for percent in entry["weights_percent"].values()),
        options=tuple(
            DecisionOption(
                name=option["name"],
                alternative=option["alternative"] or "",
                scores=tuple(Decimal(score) for score in option["scores"]),
                printed_total=Decimal(option["printed_total"]),
                printed_decision=option["printed_decision"],
            )
            for option in entry["options"]
        ),
        measurable=entry["measurable"] or "",
        threshold=None if entry["threshold"] is None else Decimal(entry["threshold"]),
    )


def _half_a_unit(printed: Decimal) -> Decimal:
    exponent = printed.as_tuple().exponent
    assert isinstance(exponent, int)  # only NaN and infinity have another
    return Decimal(5).scaleb(exponent - 1)
