"""The figures of a report as images, with the numbers that they draw."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from PIL import Image

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import one_line
from docmind_lab.tables.conditions import by_condition, condition_columns, in_words
from docmind_lab.tables.frames import StudyTables, Tables
from docmind_lab.views import plots
from docmind_lab.views.plots.frontiers import MEASURES, frontier, frontier_frame
from docmind_lab.views.plots.look import ON_A_PAGE, Canvas, png_of
from docmind_lab.views.reports.report_page import Figure, Table
from docmind_lab.views.reports.report_tables import table_of

MOST_CONDITIONS = 4
"""The most conditions that are drawn; a page of more would be skimmed."""

# Figures are flat tints of a few hues on white: a palette holds them without any difference to be seen.
_PALETTE = 128


@dataclass(frozen=True)
class Part(Tables):
    """The tables of one condition. words: the condition; "" if there is no other."""

    words: str

    @property
    def caption(self) -> str:
        """The condition as the end of a title."""
        return f" · {self.words}" if self.words else ""


def parts_of(study: StudyTables) -> tuple[list[Part], list[str]]:
    """Return the conditions that figures are drawn for, and the names of the others.

    Of too many, the first, the last and some evenly between them are drawn.
    """
    columns = condition_columns(study.runs)
    conditions = [(in_words(condition, columns), group) for condition, group in by_condition(study.runs)]
    chosen = {round(place) for place in np.linspace(0, len(conditions) - 1, min(MOST_CONDITIONS, len(conditions)))}
    parts, left_out = [], []
    for place, (words, group) in enumerate(conditions):
        if place in chosen:
            ids = set(group["run_id"])
            calls, events = (frame[frame["run_id"].isin(ids)] for frame in (study.calls, study.events))
            parts.append(Part(group, calls, events, words))
        else:
            left_out.append(words)
    return parts, left_out


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure that is not drawn yet. draw: onto a canvas. tables: its numbers."""

    title: str
    alt: str
    draw: Callable[[Canvas], Axes]
    tables: tuple[Table, ...]

    def figure(self) -> Figure:
        """Return the figure with its image. Raises: what drawing it raises."""
        return Figure(self.title, self.alt, image_of(self.draw), self.tables)


def completion_of(study: StudyTables, where: str = "") -> Drawing:
    """Return the completion curves of one condition. where: the condition, as the end of the title."""
    frame = plots.completion_frame(study)
    arms = frame.groupby("label", sort=False).last()
    text = "; ".join(f"{one_line(str(arm))} {row['answered']} of {row['runs']}" for arm, row in arms.iterrows())
    return Drawing(
        f"Who was answered by when, of all runs{where}",
        f"Step curves that rise from 0 % with each answer, one for each arm. At their ends are answered: {text}.",
        lambda ax: plots.completion(study, ax=ax),
        (table_of("The steps of the curves, bands pointwise at 95 %", frame),),
    )


def _past_words(row: Mapping[Any, Any]) -> str:
    median, most = ("at least " if row[name] else "" for name in ("median_is_lower_bound", "lower_bounds"))
    return f", median {median}{row['median_s']:.3g} s, up to {most}{row['high_s']:.3g} s"


def overrun_of(study: StudyTables, where: str = "") -> Drawing:
    """Return both overruns of every run of one condition. where: as for `completion_of`."""
    frame = plots.overrun_frame(study)
    summary = plots.overrun_summary(frame)
    text = "; ".join(
        f"{one_line(row['label'])} {row['overrun']} {row['past']} of {row['runs']}"
        + (_past_words(row) if row["past"] else "")
        for row in summary.to_dict("records")
    )
    return Drawing(
        f"The caller's wait and the work, run by run{where}",
        f"A point for each run: how long its caller waited, and its work went on, past the deadline. Past it: {text}.",
        lambda ax: plots.overrun(study, ax=ax),
        (
            table_of("Runs past the deadline, and how far", summary),
            table_of("The points", frame.drop(columns=["jitter"])),
        ),
    )


def timeline_of(study: StudyTables, where: str = "", seed: int | None = None) -> Drawing:
    """Return the timeline of one question, None for the one with the most late work. where: as for `completion_of`.

    Raises: ConfigurationError without calls.
    """
    lanes, bars = plots.lanes_frame(study, seed), plots.timeline_frame(study, seed)
    if bars.empty:
        raise ConfigurationError("calls has no rows of these runs: there is nothing to draw")
    text = "; ".join(f"{one_line(row['label'])}: {', '.join(row['note'].splitlines())}" for _, row in lanes.iterrows())
    question = study.runs.set_index("run_id")["question_id"][lanes["run_id"].iloc[0]]
    return Drawing(
        f"The question with the most work after its deadline{where}",
        f"Timeline of the calls of question {question}, a lane for each arm, a row for each role, with what went on "
        f"past the deadline. {text}.",
        lambda ax: plots.timeline(study, seed=seed, ax=ax),
        (table_of("The lanes", lanes.drop(columns=["seed", "run_id", "note"])), table_of("The bars", bars)),
    )


def frontiers_of(study: StudyTables) -> Iterator[Drawing]:
    """Yield figures of what a longer decision timeout gains: one for each measure and other condition.

    Raises: ConfigurationError when there is one decision timeout only.
    """
    others = [column for column in condition_columns(study.runs) if column != "decision_timeout_s"]
    groups = study.runs.groupby(others, observed=True, sort=True) if others else [((), study.runs)]
    for _, runs in groups:
        words = in_words(runs.iloc[0], others)
        part = Part(runs, study.calls, study.events, words)
        for measure in ("answered_in_time", "recall_at_deadline"):
            if runs[measure].notna().all():
                yield _frontier(part, measure)


def _frontier(part: Part, measure: str) -> Drawing:
    frame = frontier_frame(part, measure)
    ends = frame.sort_values("decision_timeout_s").groupby("arm", sort=False)["mean"].agg(["first", "last"])
    text = "; ".join(
        f"{one_line(str(arm))} from {row['first']:.0%} to {row['last']:.0%}" for arm, row in ends.iterrows()
    )
    what = MEASURES[measure].partition(" (")[0]
    return Drawing(
        f"{what[0].upper()}{what[1:]}, by decision timeout{part.caption}",
        f"A line for each arm against the decision timeout, from the smallest to the largest: {text}.",
        lambda ax: frontier(part, measure, ax=ax),
        (table_of(f"The points of the lines: {what}", frame),),
    )


def image_of(draw: Callable[[Canvas], Axes]) -> bytes:
    """Return the image of a figure, a PNG with a palette. Raises: what `draw` raises."""
    small = io.BytesIO()
    with Image.open(io.BytesIO(png_of(draw(ON_A_PAGE)))) as image:
        image.convert("RGB").quantize(_PALETTE).save(small, format="png", optimize=True)
    return small.getvalue()
