"""A scorecard in words: its table and its findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from docmind_lab.analysis.findings.measured_perf import CONTROL
from docmind_lab.analysis.text import join_names, number, one_line, percent, with_interval

if TYPE_CHECKING:
    from docmind_lab.analysis.findings.scorecard import Scorecard

# Below this many seeds a percentile bootstrap interval is known to be too narrow (Efron and Tibshirani, An
# Introduction to the Bootstrap, 1993, chapter 13: it inherits the plug-in variance, short by 1/n).
_FEW_SEEDS = 20


def display_table(card: Scorecard) -> pd.DataFrame:
    """Return the totals, rounded, with "judged" and "measured" in the headings."""
    totals = card.totals
    columns = {f"{name} (judged)": [number(v, 1) for v in totals[name]] for name in card.table.criteria}
    columns[f"{card.table.measurable} (measured)"] = _intervals(totals, "perf", 1)
    columns["total (judged)"] = [number(v, 2) for v in totals["total_judged"]]
    columns["total (measured)"] = _intervals(totals, "total", 2)
    columns["first in"] = [percent(v) for v in totals["first_share"]]
    return pd.DataFrame(columns, index=pd.Index(totals["option"], name=None))


def sentences_of(card: Scorecard) -> tuple[str, ...]:
    """Return the findings of a scorecard, one sentence each."""
    return (*card.table.sentences(), *_totals(card), *_weights(card), _maps(card), *_limits(card))


def _totals(card: Scorecard) -> Iterator[str]:
    known, measurable = card.scored, card.table.measurable
    moved = [
        f"{one_line(row['option'])} {number(row[measurable], 1)} judged, {number(row['perf_measured'], 1)} measured"
        for _, row in known.iterrows()
    ]
    yield f"{measurable}: {'; '.join(moved)}."
    judged, measured = (one_line(card.decision[perf]) for perf in ("judged", "measured"))
    if not measured:
        yield "With measured Perf several options share the lead."
        return
    row = known[known["option"] == card.decision["measured"]].iloc[0]
    was = "as it did as judged" if judged == measured else f"where {judged or 'several'} led as judged"
    total = with_interval(row["total_measured"], row["total_low"], row["total_high"], 2)
    yield (
        f"With measured {measurable} {measured} leads, {was}, with {total} of 10 (95 % bootstrap interval); it led "
        f"alone in {percent(row['first_share'])} of the resamples."
    )


def _weights(card: Scorecard) -> Iterator[str]:
    for perf, frame in card.simplex.groupby("perf", sort=False):
        winning = frame[frame["wins_share"] > 0].sort_values("wins_share", ascending=False, kind="stable")
        phrases = [
            f"{one_line(row['option'])} leads under {_share_text(row['wins_share'])}" for _, row in winning.iterrows()
        ]
        leads = join_names(phrases) if phrases else "no option leads alone"
        yield f"Of all weights, with {perf} {card.table.measurable}, {leads}. {_nearest(card, str(perf))}"


def _share_text(share: float) -> str:
    """Return a share in percent that is rounded to 0 or 100 only if it is exactly that."""
    if 0 < share < 0.0005:
        return "less than 0.1%"
    return "more than 99.9%" if 0.9995 <= share < 1 else percent(share, 1 if 0 < share < 1 else 0)


def _nearest(card: Scorecard, perf: str) -> str:
    first = card.nearest[card.nearest["perf"] == perf].iloc[0]
    if np.isinf(first["moved_percent"]):
        return "No weights in whole percent put another option ahead of it."
    at = ", ".join(f"{name} {first[name]:.0f} %" for name in card.table.criteria)
    return (
        f"The nearest weights in whole percent that change the decision move {number(first['moved_percent'], 1)} "
        f"points: at {at} {one_line(first['rival'])} leads."
    )


def _maps(card: Scorecard) -> str:
    changed = card.maps.loc[card.maps["winner"] != card.decision["measured"], "winner"].value_counts()
    who = [f"{one_line(str(name)) or 'a tie'} in {count:,}" for name, count in changed.items()]
    return (
        f"Under {len(card.maps):,} other maps from measures to scores the decision changes in "
        f"{percent(card.changed_share, 1)} of them{f' ({join_names(who)})' if who else ''}."
    )


def _limits(card: Scorecard) -> Iterator[str]:
    unknown = card.totals[card.totals["total_judged"].isna()]
    if len(unknown):
        names = join_names([one_line(name) for name in unknown["option"]])
        yield f"{names}: measured {card.table.measurable} and {unknown['note'].iloc[0]}."
    control = card.totals[card.totals["alternative"] == CONTROL].iloc[0]
    yield (
        f"The control, which enforces nothing, has {number(control['perf_measured'], 1)} on this map: read every other "
        f"{card.table.measurable} against that."
    )
    unmeasured = sorted(set(card.components.loc[card.components["measured"].isna(), "component"]))
    if unmeasured:
        yield f"Not measured here, its weight left to the others: {join_names(unmeasured)}."
    if card.seeds < _FEW_SEEDS:
        yield f"{card.seeds} seeds are few for a bootstrap: its intervals are too narrow below {_FEW_SEEDS}."


def _intervals(totals: pd.DataFrame, name: str, digits: int) -> list[str]:
    columns = (totals[f"{name}_measured"], totals[f"{name}_low"], totals[f"{name}_high"])
    return [with_interval(*row, digits) for row in zip(*columns, strict=True)]
