"""The scorecard: a decision record's table with Perf measured instead of judged, and what would change its decision.

    card = scorecard(study.runs)
    card.totals                 # one row per option of the record, then the arms it does not know
    card.components             # what Perf is made of: measured, score, weight
    card.simplex, card.nearest  # under which weights which option wins; the nearest that change the decision
    card.maps                   # the decision under other maps from measures to scores
    print(card.text())

The other columns are those of the record: nobody has measured complexity or alignment here, and nobody invents them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.conditions import budgets_in_words, varying
from docmind_lab.analysis.findings import scorecard_frames as frames
from docmind_lab.analysis.findings.decision_tables import DecisionTable, decision_table
from docmind_lab.analysis.findings.measured_perf import PerfMap, measures_of
from docmind_lab.analysis.findings.scorecard_words import display_table, markdown_of, sentences_of
from docmind_lab.analysis.findings.weights import winner_of
from docmind_lab.analysis.text import join_names
from docmind_lab.core.errors import ConfigurationError

RESAMPLES: Final = 2000


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A decision table with measured Perf. Options are called as in every figure ("A  cooperative"); scores and totals
    go from 0 to 10. Intervals are 95 % percentile bootstrap intervals over seeds, the same seeds drawn for every arm.

    totals: one row per arm: option, alternative, a column for each criterion as judged (NaN: the record has none),
    perf_measured, perf_low, perf_high, total_printed, total_judged, total_measured, total_low, total_high, first_share
    (of the resamples in which it led alone), tied_share (shared the lead), note.
    components: one row per arm and component: option, alternative, component, meaning, measured, low, high, score,
    weight (0 for one that was not measured).
    simplex: one row per Perf (judged, measured) and option: perf, option, alternative, wins_share and ties_share of all
    weights of the criteria.
    weight_map: one row per Perf and weights of a grid: perf, a column for each criterion in percent, winner ("" where
    several share the lead), alternative.
    nearest: one row per Perf and rival of its winner, nearest first: perf, winner, rival, moved_percent (weight to be
    given to other criteria, half of the L1 distance; inf: no weights do), a column for each criterion with the weight
    in percent at which the rival draws level.
    maps: one row per other map: the parameters of `PerfMap`, winner ("" for a tie).
    """

    table: DecisionTable
    perf_map: PerfMap
    totals: pd.DataFrame
    components: pd.DataFrame
    simplex: pd.DataFrame
    weight_map: pd.DataFrame
    nearest: pd.DataFrame
    maps: pd.DataFrame
    seeds: int
    context: str

    @property
    def decision(self) -> dict[str, str]:
        """The option that leads at the weights of the table, for each Perf (judged, measured); "" for a tie."""
        known = self.totals[self.totals["total_judged"].notna()]
        winners = {perf: int(winner_of(known[f"total_{perf}"].to_numpy(dtype=np.float64))) for perf in frames.PERFS}
        return {perf: "" if place < 0 else str(known["option"].iloc[place]) for perf, place in winners.items()}

    def map_sensitivity(self) -> pd.DataFrame:
        """How often another option wins under other maps: one row for all maps, then one per parameter and value.

        Columns: parameter, value (NaN for all), maps, changed_share (of them, against the decision of the map in use).
        """
        changed = self.maps["winner"] != self.decision["measured"]
        rows: list[tuple[str, float, int, float]] = [("all", np.nan, len(changed), float(changed.mean()))]
        for name, values in frames.MAP_LEVELS.items():
            for value in values:
                of_value = changed[self.maps[name] == value]
                rows.append((name, value, len(of_value), float(of_value.mean())))
        return pd.DataFrame(rows, columns=["parameter", "value", "maps", "changed_share"])

    @property
    def title(self) -> str:
        """A description of what was scored, and under which conditions."""
        return f"{self.table.name} with measured Perf · {self.context} · {self.seeds} seeds"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return the findings, one sentence each."""
        return sentences_of(self)

    def text(self) -> str:
        """Return table, map and findings as plain text."""
        lines = "\n".join(f"- {line}" for line in self.sentences)
        return f"{self.title}\n{display_table(self).to_string()}\n\n{self.perf_map.text()}\n\n{lines}"

    def markdown(self) -> str:
        """Return table, map and findings as Markdown."""
        return markdown_of(self)

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.sentences)
        perf_map = "<br>".join(escape(line) for line in self.perf_map.text().splitlines())
        table = display_table(self).to_html(border=0)
        return f"<p><b>{escape(self.title)}</b></p>{table}<p>{perf_map}</p><ul>{lines}</ul>"


def scorecard(
    runs: pd.DataFrame,
    table: str = "ADR-056",
    perf_map: PerfMap | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 7,
) -> Scorecard:
    """Return a record's decision table with Perf as these runs measured it.

        card = scorecard(study.runs)
        scorecard(study.runs, perf_map=PerfMap(overrun_zero=0.25, answered_weight=2))

    Args:
        runs: The `runs` table of a study, the control among its arms; several conditions count alike.
        table: A record whose table has a criterion that a study measures.
        perf_map: How measures become scores; None for `PerfMap()`.
        resamples: Number of resamples of the bootstrap.
        seed: Seed of the bootstrap.

    Raises:
        ConfigurationError: The table has no such criterion, the runs cannot be compared, or an option of the record was
            run in several ways.
    """
    decided = decision_table(table)
    if not decided.measurable:
        raise ConfigurationError(
            f"table {table} has no criterion that a study of deadlines measures; decision_table({table!r}) holds what "
            "can be said of it"
        )
    measures = measures_of(runs)
    basis = frames.Basis(
        table=decided,
        measures=measures,
        perf_map=PerfMap() if perf_map is None else perf_map,
        rows=frames.rows_of_options(decided, measures),
        draws=frames.draw_seeds(len(measures.seeds), resamples, seed),
    )
    return Scorecard(
        table=decided,
        perf_map=basis.perf_map,
        totals=frames.totals_frame(basis),
        components=frames.components_frame(basis),
        simplex=frames.simplex_frame(basis),
        weight_map=frames.weight_map_frame(basis),
        nearest=frames.nearest_frame(basis),
        maps=frames.maps_frame(basis),
        seeds=len(measures.seeds),
        context=_context(runs),
    )


def _context(runs: pd.DataFrame) -> str:
    budgets = join_names([f"{value:g}" for value in sorted(runs["decision_timeout_s"].unique())])
    phrases = ("decision_timeout_s", "latency_profile", "fault", "clock", "second_budgets")
    latencies, faults, clocks = (join_names(sorted({str(v) for v in runs[column]})) for column in phrases[1:4])
    rest = [f"several values of {column}" for column in varying(runs) if column not in phrases]
    return " · ".join(
        [
            f"{budgets} s decision timeout",
            f"{latencies or 'live'} latencies",
            f"fault {faults}",
            *budgets_in_words(runs),
            f"{clocks} clock",
            *rest,
        ]
    )
