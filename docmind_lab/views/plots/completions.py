"""Figure: the share of all runs answered by each instant, with confidence bands."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from docmind_lab.statistics.answer_times import answer_times
from docmind_lab.statistics.completion_curves import completion_curve
from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots import look

# The runs' own instants have a strip below 0 %, a row for each arm.
_TICK_ROW: Final = 0.028
_BAND_ALPHA: Final = 0.13


def completion_frame(study: StudyTables) -> pd.DataFrame:
    """Return the steps of the curves: a row at 0 s, at each instant with an answer, and at the curve's end.

    Columns: group (0, 1, … of arms, see `conditions`), label, alternative, at_s, answered (runs answered by then, in
    time or late), runs (all runs of the arm, whatever became of them), share (answered by then: cumulative incidence,
    Aalen–Johansen), low, high (95 % pointwise band of the share).
    A partial answer and an error are ends without an answer. A run that timed out or is unfinished is censored where it
    was cut, at the deadline or later: the share is answered / runs up to the deadline, and a curve ends at the horizon
    or where the last runs of its arm were cut.

    Args:
        study: A study, or any object with the frames `runs`, `calls` and `events`.

    Raises:
        ConfigurationError: No runs, or several decision timeouts or other conditions; the message names the column.
    """
    runs = look.comparable(study.runs)
    frames = []
    for _, of_arm in runs.groupby("group"):
        curve = completion_curve(answer_times(of_arm), float(of_arm["horizon_s"].max()))
        curve = curve.assign(answered=curve["events"].cumsum(), runs=len(of_arm))
        frames.append(curve.assign(**{name: of_arm[name].iloc[0] for name in ("group", "label", "alternative")}))
    columns = ["group", "label", "alternative", "at_s", "answered", "runs", "share", "low", "high"]
    return pd.concat(frames, ignore_index=True)[columns]


def completion(study: StudyTables, *, ax: look.Canvas = None) -> Axes:
    """Plot the share of runs answered by each instant: a step curve and a band for each arm, and the deadline.

    All runs are in the denominator, so a curve ends where answers end, not at 100 %. Bands are 95 % pointwise; where
    several coincide one is drawn, in the colour of the first. Ticks below 0 % are the instants of the answers.

    Other parameters are those of `completion_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    frame = completion_frame(study)
    deadline_s = float(study.runs["decision_timeout_s"].iloc[0])
    groups = int(frame["group"].nunique())
    ax = look.axes_for(ax, 10.0, 5.0)
    _draw_bands(ax, frame)
    handles = []
    for last in look.rows_of(frame.drop_duplicates("group", keep="last")):
        steps, place = frame[frame["group"] == last.group], last.group
        colour = look.colour_of(last.alternative)
        (line,) = ax.step(
            steps["at_s"],
            steps["share"],
            where="post",
            color=colour,
            label=f"{last.label}: {last.answered} of {last.runs} answered",
            gid=f"completion:{place}",
            **look.line_style(place, groups),
        )
        handles.append(line)
        _draw_answers(ax, steps, place, colour)
    look.deadline_line(ax, deadline_s)
    # Nothing changes after the last answer; the frame goes on to the horizon.
    answered_at_s = frame.loc[frame.groupby("group")["answered"].diff() > 0, "at_s"]
    ax.set_xlim(0.0, 1.15 * max(deadline_s, float(answered_at_s.max()) if len(answered_at_s) else 0.0))
    ax.set_ylim(-(groups + 0.6) * _TICK_ROW, 1.02)
    ax.yaxis.set_major_locator(FixedLocator([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]))
    look.percent_ticks(ax)
    look.faint_grid(ax, "y")
    ax.set_xlabel("seconds since the run's start (s)")
    ax.set_ylabel("runs answered (% of all runs)")
    look.legend_below(ax, handles, columns=2)
    # No-break spaces, so that the context does not break within "95 % pointwise".
    percent = "\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}"
    named = f"95{percent}pointwise bands, Aalen–Johansen · a tick below 0{percent}is a run answered"
    look.style(ax, "The share of runs answered by each instant", f"{look.context_of(study.runs)} · {named}")
    return ax


def _draw_answers(ax: Axes, steps: pd.DataFrame, place: int, colour: str) -> None:
    counts = steps["answered"].diff().fillna(0).astype("int64")
    at_s = np.repeat(steps["at_s"].to_numpy(), counts.to_numpy())
    heights = np.full(len(at_s), -(place + 0.8) * _TICK_ROW)
    ticks: dict[str, Any] = {"marker": "|", "markersize": 5.5, "markeredgewidth": 1.1, "linestyle": "none"}
    ax.plot(at_s, heights, color=colour, gid=f"answers:{place}", **ticks)


def _draw_bands(ax: Axes, frame: pd.DataFrame) -> None:
    """Draw each arm's band, except where an earlier arm has the same one: overlaid tints turn to mud."""
    instants_s = np.unique(frame["at_s"].to_numpy())
    drawn: list[np.ndarray[Any, Any]] = []
    for place, steps in frame.groupby("group"):
        at_s = steps["at_s"].to_numpy()
        step = np.searchsorted(at_s, instants_s[:-1], side="right") - 1
        band = steps[["low", "high"]].to_numpy()[step]
        shown = instants_s[:-1] < at_s[-1]
        for earlier in drawn:
            shown &= ~np.isclose(band, earlier).all(axis=1)
        band[instants_s[:-1] >= at_s[-1]] = np.nan
        drawn.append(band)
        colour = look.colour_of(steps["alternative"].iloc[0])
        edges = np.flatnonzero(np.diff(shown.astype("int64"), prepend=0, append=0))
        for begun, ended in zip(edges[::2], edges[1::2], strict=True):
            low, high = np.vstack([band[begun:ended], band[ended - 1]]).T
            ax.fill_between(
                instants_s[begun : ended + 1],
                low,
                high,
                step="post",
                color=colour,
                alpha=_BAND_ALPHA,
                linewidth=0,
                zorder=1,
                gid=f"band:{place}",
            )
