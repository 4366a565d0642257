"""Figure: how much of its allotted time each role left over, visit by visit."""

from __future__ import annotations

import json
import textwrap
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from docmind_lab.analysis.plots import look
from docmind_lab.analysis.role_times import order_of_work, visits_of
from docmind_lab.analysis.tables.frames import StudyTables
from docmind_lab.core.errors import ConfigurationError

_HEAD_IN: Final = 0.3
_ROW_IN: Final = 0.27
_LABEL_CHARACTERS: Final = 44
_CUT: Final = frozenset({"timeout", "cancelled", "abandoned", "refused"})


def slack_frame(study: StudyTables) -> pd.DataFrame:
    """Return the points of the plot: one row per visit of a role, from the client's rows of its calls.

    Columns: role (an ordered categorical, in the order of work), group (0, 1, … of alternative and options), label,
    alternative, run_id, handoff, allotted_s, took_s, slack_s (allotted − took; negative past the deadline), cut (a
    call of it was cut or refused, or left behind by its caller), lower_bound (it had not ended by the horizon; took_s
    is the time until then, and slack_s the most there can be).

    allotted_s: under an allocation, the cap of the visit's first call; without one, what was left of the decision
    timeout when it began. What a visit is: see `docmind_lab.analysis.role_times`.
    Raises: ConfigurationError for no runs or calls, and for several conditions, naming the column.
    """
    runs = look.comparable(study.runs)
    visits = visits_of(study.calls, runs).merge(runs[_OF_RUNS], on="run_id")
    if visits.empty:
        raise ConfigurationError("calls has no client rows of these runs: there is nothing to draw")
    divided = visits["alternative_options"].map(lambda options: "allocation" in json.loads(options))
    visits["allotted_s"] = visits["first_timeout_s"].where(divided, visits["first_remaining_s"])
    visits["took_s"] = visits["ended_at_s"] - visits["started_at_s"]
    visits["slack_s"] = visits["allotted_s"] - visits["took_s"]
    visits["cut"] = [not _CUT.isdisjoint(outcomes) for outcomes in visits["outcomes"]]
    visits["role"] = pd.Categorical(visits["role"], categories=order_of_work(visits), ordered=True)
    return visits.sort_values(["role", "group", "run_id", "handoff"], ignore_index=True)[_COLUMNS]


_OF_RUNS: Final = ["run_id", "group", "label", "alternative", "alternative_options"]
_COLUMNS: Final = [
    "role",
    "group",
    "label",
    "alternative",
    "run_id",
    "handoff",
    "allotted_s",
    "took_s",
    "slack_s",
    "cut",
    "lower_bound",
]


def slack_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the summary of `slack_frame` that is drawn over its points: one row per role and group.

    Columns: role, group, label, alternative, visits, median_s, cut (visits that were), lower_bounds.
    """
    keys = ["role", "group", "label", "alternative"]
    summary = frame.groupby(keys, observed=True, as_index=False).agg(
        visits=("slack_s", "size"),
        median_s=("slack_s", "median"),
        cut=("cut", "sum"),
        lower_bounds=("lower_bound", "sum"),
    )
    return summary.sort_values(["role", "group"], ignore_index=True)


def budget_slack(study: StudyTables, *, ax: Axes | None = None) -> Axes:
    """Plot the slack of every visit of each role, in a row for each alternative.

    Points are visits, crosses those that were cut or left behind; the upright line is their median. What lies left of
    0 went on past the time it was given.
    Raises: ConfigurationError as `slack_frame`.
    """
    points = slack_frame(study)
    summary = slack_summary(points)
    groups = int(summary["group"].max()) + 1
    roles = list(points["role"].cat.categories)
    if ax is None:
        ax = look.new_axes(*budget_slack_size(len(roles), groups))
    look.row_bands(ax, len(roles))
    for row in look.rows_of(summary):
        middle = _middle(roles.index(row.role), row.group, groups)
        _draw_row(ax, row, points[(points["role"] == row.role) & (points["group"] == row.group)], middle, groups)
    ax.axvline(0.0, color=look.INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=1.5, gid="spent")
    look.note(ax, "spent", (0.0, 1.0), (0.0, 3.0), x_in="data", ha="center", va="bottom")
    look.faint_grid(ax, "x")
    ax.set_ylim(len(roles) - 0.5, -0.5)
    middles = [_middle(roles.index(row.role), row.group, groups) for row in look.rows_of(summary)]
    ax.set_yticks(middles, [textwrap.shorten(label, _LABEL_CHARACTERS, placeholder=" …") for label in summary["label"]])
    for place, role in enumerate(roles):
        look.note(ax, role, (0.0, place - 0.5), (-6.0, -9.0), y_in="data", ha="right", weight="bold")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("slack of a visit: what the role was given minus what it took (s)")
    look.legend_below(ax, _legend(), columns=3)
    look.style(ax, "What each role left of the time it was given", look.context_of(study.runs))
    return ax


def budget_slack_size(roles: int, groups: int) -> tuple[float, float]:
    """Return the width and height, in inches, for this many roles and alternatives."""
    return 10.0, 1.9 + roles * (_HEAD_IN + _ROW_IN * groups)


def _row_pitch(groups: int) -> float:
    """Return the height of an alternative's row, where that of a role is 1."""
    return _ROW_IN / (_HEAD_IN + _ROW_IN * groups)


def _middle(place: int, group: int, groups: int) -> float:
    # The name of the role stands above its rows.
    return place + 0.5 - _row_pitch(groups) * (groups - group - 0.5)


def _draw_row(ax: Axes, row: Any, points: pd.DataFrame, middle: float, groups: int) -> None:
    colour, pitch = look.colour_of(row.alternative), _row_pitch(groups)
    heights = middle + 0.6 * pitch * look.spread(pd.Series(range(len(points)))).to_numpy()
    for cut in (False, True):
        chosen = (points["cut"] == cut).to_numpy()
        gid = f"{'cut' if cut else 'points'}:{row.role}:{row.group}"
        ax.plot(points["slack_s"][chosen], heights[chosen], gid=gid, zorder=3, **_point_style(cut, colour))
    gid = f"median:{row.role}:{row.group}"
    span = [middle - 0.42 * pitch, middle + 0.42 * pitch]
    ax.plot([row.median_s] * 2, span, color=look.INK, linewidth=2.2, zorder=3.5, gid=gid)
    look.note(ax, _row_note(row), (1.0, middle), (10.0, 0.0), y_in="data")


def _row_note(row: Any) -> str:
    bound = "< " if 2 * row.lower_bounds >= row.visits else ""
    text = f"median {bound}{look.seconds_text(row.median_s)}"
    text = text.replace("-", "−")  # as the axis writes it
    return f"{text}; {row.cut} of {row.visits} cut or left" if row.cut else f"{text}; {row.visits} visits"


def _point_style(cut: bool, colour: str) -> dict[str, Any]:
    """Return the style of a visit's point: full circles for visits that ended by themselves, crosses for cut ones."""
    style: dict[str, Any] = {"linestyle": "none", "clip_on": False}
    if cut:
        return {**style, "marker": "x", "markersize": 4.5, "markeredgecolor": colour, "markeredgewidth": 1.3}
    face = {"markerfacecolor": colour, "markeredgecolor": look.PAPER, "markeredgewidth": 0.5, "alpha": 0.85}
    return {**style, "marker": "o", "markersize": 4.5, **face}


def _legend() -> list[Line2D]:
    return [
        look.legend_key("a visit that ended by itself", **_point_style(False, look.OTHER_COLOUR)),
        look.legend_key("a visit that was cut, or left behind", **_point_style(True, look.OTHER_COLOUR)),
        look.median_key("line: median"),
    ]
