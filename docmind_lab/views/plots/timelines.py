"""Figure: every call of one question under each alternative, and what went on after the caller had gone.

`lanes_frame` and `timeline_frame` say what is drawn: a lane for each run, a span for each call. `timeline` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch, Rectangle

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots import look

_ROLES: Final = ("supervisor", "router", "planner", "retrieval", "synthesis", "validation")
_MARKS: Final = ("call", "late", "abandoned", "refused")


def lanes_frame(study: StudyTables, seed: int | None = None) -> pd.DataFrame:
    """Return the lanes of a timeline, top to bottom: one row per run of one question.

    Columns: lane (0, 1, …), label, run_id, alternative, seed, outcome, deadline_s, horizon_s, returned_at_s (NaN: no
    answer by the horizon), quiescent_at_s, work_censored, note (outcome and overruns in words).

    Args:
        study: A study, or any object with the frames `runs`, `calls` and `events`.
        seed: Of the question; None for the one with the most server work after the deadline, the least of equals.

    Raises:
        ConfigurationError: The seed is not there (the message names those that are), or the runs do not belong in one
            picture.
    """
    runs = _select_runs(study.runs, seed)
    lanes = look.comparable(runs).rename(columns={"decision_timeout_s": "deadline_s"})
    twins = lanes["label"].duplicated(keep=False)
    lanes["label"] = lanes["label"].where(~twins, lanes["label"] + " " + lanes["run_id"])
    lanes["lane"] = range(len(lanes))
    lanes["note"] = [_lane_note(row) for row in look.rows_of(lanes)]
    columns = ["lane", "label", "run_id", "alternative", "seed", "outcome", "deadline_s", "horizon_s"]
    return lanes[[*columns, "returned_at_s", "quiescent_at_s", "work_censored", "note"]]


def timeline_frame(study: StudyTables, seed: int | None = None) -> pd.DataFrame:
    """Return the bars and marks of a timeline, one row each.

    Columns: lane, run_id, alternative; role (ordered categorical: the rows of each lane); kind, call_id, attempt;
    mark (call: a client's call; late, abandoned: the part of a server's work after the deadline with the caller still
    waiting, and after the caller's return; refused); begun_at_s, ended_at_s; open (not ended by the horizon, and drawn
    up to it); sublane, sublanes (calls of one role at the same time share its row).

    The parameters are those of `lanes_frame`, and so are the errors.
    """
    lanes = lanes_frame(study, seed)
    calls = study.calls[study.calls["run_id"].isin(lanes["run_id"])]
    rows: list[dict[str, Any]] = []
    for lane in look.rows_of(lanes):
        spans = [
            span
            for call in look.rows_of(calls[calls["run_id"] == lane.run_id])
            for span in _spans(call, lane.deadline_s, lane.returned_at_s, lane.horizon_s)
        ]
        shared = {"lane": lane.lane, "run_id": lane.run_id, "alternative": lane.alternative}
        rows += [{**shared, **span} for span in _with_sublanes(spans)]
    columns = ["lane", "run_id", "alternative", "role", "kind", "call_id", "attempt", "mark"]
    columns += ["begun_at_s", "ended_at_s", "open", "sublane", "sublanes"]
    frame = pd.DataFrame(rows, columns=columns).astype({"begun_at_s": "float64", "ended_at_s": "float64"})
    present = [str(role) for role in frame["role"].unique()]
    roles = [role for role in _ROLES if role in present] + [role for role in present if role not in _ROLES]
    frame["role"] = pd.Categorical(frame["role"], categories=roles, ordered=True)
    frame["mark"] = pd.Categorical(frame["mark"], categories=_MARKS)
    return frame


def _select_runs(runs: pd.DataFrame, seed: int | None) -> pd.DataFrame:
    if runs.empty:
        return runs
    late = runs["busy_after_deadline_s"].fillna(0.0).groupby(runs["seed"]).sum().sort_index()
    if seed is None:
        seed = min(late.index[late == late.max()])
    if seed not in late.index:
        known = ", ".join(str(value) for value in late.index)
        raise ConfigurationError(f"seed {seed} is not that of a run; the seeds are {known}")
    return runs[runs["seed"] == seed]


def _lane_note(run: Any) -> str:
    """Return the outcome and both overruns of a lane, as bounds where observation ended first."""
    observed_s = run.horizon_s - run.deadline_s
    unanswered = math.isnan(run.returned_at_s)
    caller = f"> {look.seconds_text(observed_s)}" if unanswered else look.seconds_text(run.caller_overrun_s)
    work = f"> {look.seconds_text(observed_s)}" if run.work_censored else look.seconds_text(run.work_overrun_s)
    busy = run.busy_after_deadline_s
    server = "no server log" if math.isnan(busy) else f"server-busy late {look.seconds_text(busy)}"
    outcome = str(run.outcome).replace("_", " ")
    return f"{outcome}\ncaller overrun {caller}\nwork overrun {work}\n{server}"


def _spans(call: Any, deadline_s: float, returned_at_s: float, horizon_s: float) -> list[dict[str, Any]]:
    """Return the bar of a client's call, or the late parts of a server's."""
    still_open = math.isnan(call.ended_at_s)
    ended_at_s = horizon_s if still_open else call.ended_at_s
    shared = {"role": str(call.role), "kind": str(call.kind), "call_id": call.call_id, "attempt": call.attempt}

    def span(mark: str, begun_at_s: float, ended_at_s: float) -> dict[str, Any]:
        return {**shared, "mark": mark, "begun_at_s": begun_at_s, "ended_at_s": ended_at_s, "open": still_open}

    if call.outcome == "refused":
        return [span("refused", call.started_at_s, call.started_at_s)]
    if call.seen_from == "client":
        return [span("call", call.started_at_s, ended_at_s)]
    left_at_s = math.inf if math.isnan(returned_at_s) else returned_at_s
    late = span("late", max(call.started_at_s, deadline_s), min(ended_at_s, left_at_s))
    abandoned = span("abandoned", max(call.started_at_s, left_at_s), ended_at_s)
    return [part for part in (late, abandoned) if part["ended_at_s"] > part["begun_at_s"]]


def _with_sublanes(spans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return spans with a row among those of the same role and time; parts of one call stay together."""
    whole: dict[tuple[str, str, int], tuple[float, float]] = {}
    for span in spans:
        key = (span["role"], span["call_id"], span["attempt"])
        begun_at_s, ended_at_s = whole.get(key, (math.inf, -math.inf))
        whole[key] = (min(begun_at_s, span["begun_at_s"]), max(ended_at_s, span["ended_at_s"]))
    places: dict[tuple[str, str, int], int] = {}
    crowds: list[list[tuple[str, str, int]]] = []
    free_at_s: list[float] = []
    role = None
    for key, (begun_at_s, ended_at_s) in sorted(whole.items(), key=lambda item: (item[0][0], item[1], item[0])):
        if key[0] != role or begun_at_s >= max(free_at_s):
            role, free_at_s = key[0], []
            crowds.append([])
        place = next((i for i, free in enumerate(free_at_s) if free <= begun_at_s), len(free_at_s))
        free_at_s[place : place + 1] = [ended_at_s]
        places[key] = place
        crowds[-1].append(key)
    sizes = {key: 1 + max(places[other] for other in crowd) for crowd in crowds for key in crowd}
    return [
        {**span, "sublane": places[key], "sublanes": sizes[key]}
        for span in spans
        for key in [(span["role"], span["call_id"], span["attempt"])]
    ]


_HATCHES: Final = {"late": "//////", "abandoned": "xxxxxx"}
_HEADER, _FOOTER = 1.0, 0.9  # rows of a lane above and below its roles: for what the caller saw, and the end of work
_LEAST_ROWS = 4.6  # of a lane: four lines of its note
_LEGEND_WORDS: Final = {
    "llm": "LLM call (as the client saw it)",
    "retrieval": "retrieval call",
    "other": "tool or peer call",
    "late": "server at work after the deadline, caller still waiting",
    "abandoned": "server at work after the caller's return: abandoned work",
    "refused": "call refused: no budget left",
    "returned": "caller returned",
    "quiescent": "all work ended",
    "horizon": "observation ended: still waiting (above), still at work (below)",
}


def timeline(study: StudyTables, *, seed: int | None = None, ax: look.Canvas = None) -> Axes:
    """Plot every call of one question: a lane for each alternative, a row for each role, seconds across.

    Hatched: what a server still did after the deadline or after the caller's return. Without a server's log (a live
    endpoint) there is nothing to hatch, and the lane says so.

    Other parameters are those of `lanes_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    lanes, bars = lanes_frame(study, seed), timeline_frame(study, seed)
    roles = [str(role) for role in bars["role"].cat.categories]
    height = max(_LEAST_ROWS, _HEADER + len(roles) + _FOOTER)
    # At this height rows of 8 pt text do not touch.
    ax = look.axes_for(ax, 10.0, 1.9 + 0.145 * len(lanes) * height)
    for lane in look.rows_of(lanes):
        _draw_lane(ax, lane, height)
    for bar in look.rows_of(bars):
        _draw_bar(ax, bar, bar.lane * height + _HEADER + roles.index(bar.role))
    look.deadline_line(ax, float(lanes["deadline_s"].iloc[0]))
    _label_rows(ax, lanes, roles, height)
    ends = pd.concat([bars["ended_at_s"], lanes["deadline_s"], lanes["quiescent_at_s"], lanes["returned_at_s"]])
    ax.set_xlim(0.0, float(ends.max()) * 1.02)
    ax.set_ylim(len(lanes) * height, 0.0)
    ax.set_xlabel("seconds since the run's start (s)")
    look.legend_below(ax, _legend(lanes, bars), columns=2)
    runs = study.runs[study.runs["run_id"].isin(lanes["run_id"])]
    alone = f"One question: {' '.join(lanes['label'].iloc[0].split())}"
    look.style(
        ax, "One question under each way to enforce its deadline" if len(lanes) > 1 else alone, look.context_of(runs)
    )
    return ax


def _draw_lane(ax: Axes, lane: Any, height: float) -> None:
    top = lane.lane * height
    bottom = top + height
    if lane.lane % 2 == 0:
        ax.axhspan(top, bottom, color=look.BAND, linewidth=0, zorder=0)
    unanswered = math.isnan(lane.returned_at_s)
    caller_at_s = lane.horizon_s if unanswered else lane.returned_at_s
    if not unanswered:
        ax.plot([caller_at_s] * 2, [top + 0.5, bottom], color=look.INK, linewidth=0.8, zorder=2.4)
    caller: dict[str, Any] = {
        "marker": ">" if unanswered else "v",
        "markerfacecolor": look.PAPER if unanswered else look.INK,
    }
    work: dict[str, Any] = {"marker": ">" if lane.work_censored else "^", "markerfacecolor": look.PAPER}
    style: dict[str, Any] = {"markersize": 6, "markeredgecolor": look.INK, "linestyle": "none", "clip_on": False}
    ax.plot([caller_at_s], [top + 0.5], gid=f"returned:{lane.run_id}", zorder=5, **caller, **style)
    end = [lane.quiescent_at_s], [bottom - 0.5]
    ax.plot(*end, gid=f"quiescent:{lane.run_id}", zorder=5, **work, **style)
    look.note(ax, lane.note, (1.0, top + 0.15), (10.0, 0.0), y_in="data", va="top")


def _draw_bar(ax: Axes, bar: Any, row_top: float) -> None:
    colour, kind = look.colour_of(bar.alternative), _kind(bar.kind)
    share = 0.84 / bar.sublanes
    middle = row_top + 0.08 + share * (bar.sublane + 0.5)
    gid = f"{bar.mark}:{bar.run_id}:{bar.call_id}:{bar.attempt}"
    if bar.mark == "refused":
        ax.plot([bar.begun_at_s], [middle], "x", color=look.INK, markersize=5, markeredgewidth=1.3, zorder=4, gid=gid)
        return
    thick = share if kind == "llm" else share * 0.6
    corner = (bar.begun_at_s, middle - thick / 2)
    style = {**_bar_style(kind, colour), "zorder": 2.0} if bar.mark == "call" else _late_style(bar.mark, colour)
    ax.add_patch(Rectangle(corner, bar.ended_at_s - bar.begun_at_s, thick, gid=gid, **style))


def _kind(kind: str) -> str:
    return kind if kind in ("llm", "retrieval") else "other"


def _bar_style(kind: str, colour: str) -> dict[str, Any]:
    """Return the style of a bar: full for LLM calls, thin and hollow for retrieval, tools and peers (dotted)."""
    face, edge = (colour, colour) if kind == "llm" else (look.PAPER, look.INK)
    return {"facecolor": face, "edgecolor": edge, "linewidth": 0.9, "linestyle": ":" if kind == "other" else "-"}


def _late_style(mark: str, colour: str) -> dict[str, Any]:
    face = tuple(0.25 * channel + 0.75 for channel in to_rgb(colour))
    # The hatch has the colour of the edge; a line of no width draws no edge, which would widen what took no time.
    style = {"facecolor": face, "edgecolor": colour, "linewidth": 0.0, "hatch": _HATCHES[mark]}
    return {**style, "hatch_linewidth": 0.8, "zorder": 3.0}


def _label_rows(ax: Axes, lanes: pd.DataFrame, roles: Sequence[str], height: float) -> None:
    places, texts = [], []
    for lane, label in zip(lanes["lane"], lanes["label"], strict=True):
        places += [lane * height + 0.5, *(lane * height + _HEADER + row + 0.5 for row in range(len(roles)))]
        texts += [label, *(role.replace("_", " ") for role in roles)]
    ax.set_yticks(places, texts)
    ax.tick_params(axis="y", length=0)
    for text in ax.get_yticklabels()[:: 1 + len(roles)]:
        text.set_fontweight("bold")


def _legend(lanes: pd.DataFrame, bars: pd.DataFrame) -> list[Artist]:
    """Return handles for the marks that occur, in neutral grey: the colours belong to the alternatives."""
    calls = bars[bars["mark"] == "call"]
    handles: list[Artist] = [
        Patch(label=_LEGEND_WORDS[kind], **_bar_style(kind, look.OTHER_COLOUR))
        for kind in ("llm", "retrieval", "other")
        if kind in {_kind(name) for name in calls["kind"]}
    ]
    handles += [
        Patch(label=_LEGEND_WORDS[mark], **_late_style(mark, look.OTHER_COLOUR))
        for mark in _HATCHES
        if (bars["mark"] == mark).any()
    ]
    marks = {
        "refused": ("x", look.INK, (bars["mark"] == "refused").any()),
        "returned": ("v", look.INK, lanes["returned_at_s"].notna().any()),
        "quiescent": ("^", look.PAPER, not lanes["work_censored"].all()),
        "horizon": (">", look.PAPER, lanes["returned_at_s"].isna().any() or lanes["work_censored"].any()),
    }
    style: dict[str, Any] = {"linestyle": "none", "markeredgecolor": look.INK, "markersize": look.SMALL_PT - 2}
    handles += [
        look.line_key(_LEGEND_WORDS[name], marker=marker, markerfacecolor=face, **style)
        for name, (marker, face, seen) in marks.items()
        if seen
    ]
    return handles
