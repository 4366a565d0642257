"""The views of a panel as images, with alternative text and the table of their numbers.

Drawn without pyplot, so that it can be done in any thread and leaves no figure open.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes

from docmind_lab.tables.frames import StudyTables
from docmind_lab.views import plots
from docmind_lab.views.plots.look import LEAST_HEIGHT_IN, blank_axes, png_of
from docmind_lab.views.reports.figures import Drawing, completion_of, overrun_of, timeline_of
from docmind_lab.views.reports.model import Table
from docmind_lab.views.reports.tables import table_of

# Sharp at the width of a notebook's cell on an ordinary screen; more costs time at every frame.
_DOTS_PER_INCH: Final = 110


@dataclass(frozen=True)
class TimeAxis:
    """The position of the time axis in a picture, in shares of its width and height; instants in seconds."""

    left: float
    right: float
    begins_at_s: float
    ends_at_s: float
    top: float
    bottom: float

    def place(self, at_s: float) -> float:
        """Return the share of the picture's width at an instant; instants beyond the axis are at its end."""
        share = (at_s - self.begins_at_s) / (self.ends_at_s - self.begins_at_s)
        return self.left + (self.right - self.left) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Picture:
    """An image (PNG) with its alternative text and the table of its numbers.

    decision_timeout_s: of the runs in it. time_axis: None where the picture has no line of time.
    """

    png: bytes
    alt: str
    table: Table
    decision_timeout_s: float
    time_axis: TimeAxis | None = None


def timeline_picture(study: StudyTables, seed: int | None = None) -> Picture:
    """Draw one question under each alternative. seed: the question's; None for the one with the most late work.

    Raises: ConfigurationError as `plots.timeline`.
    """
    return _picture(timeline_of(study, seed=seed), study)


def completion_picture(study: StudyTables) -> Picture:
    """Draw the share of runs answered by each instant. Raises: ConfigurationError as `plots.completion`."""
    frame = plots.completion_frame(study)
    ends = frame[frame["at_s"] <= _timeout_s(study)].drop_duplicates("group", keep="last")
    table = table_of("Answered by the deadline, bands at 95 %", ends.drop(columns=["at_s"]))
    return _picture(dataclasses.replace(completion_of(study), tables=(table,)), study)


def overrun_picture(study: StudyTables) -> Picture:
    """Draw the caller's and the work's overrun of every run. Raises: ConfigurationError as `plots.overrun`."""
    return dataclasses.replace(_picture(overrun_of(study), study), time_axis=None)


def _picture(drawing: Drawing, study: StudyTables) -> Picture:
    ax = drawing.draw(blank_axes(*drawing.size_in, LEAST_HEIGHT_IN))
    png = png_of(ax, _DOTS_PER_INCH)
    return Picture(png, drawing.alt, drawing.tables[0], _timeout_s(study), _time_axis(ax))


def _time_axis(ax: Axes) -> TimeAxis:
    """Return the position of the time axis; call it after saving, when the layout has settled."""
    box = ax.get_position()
    begins_at_s, ends_at_s = ax.get_xlim()
    return TimeAxis(box.x0, box.x1, begins_at_s, ends_at_s, 1.0 - box.y1, 1.0 - box.y0)


def _timeout_s(study: StudyTables) -> float:
    return float(study.runs["decision_timeout_s"].iloc[0]) if len(study.runs) else math.nan
