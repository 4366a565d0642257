"""What a timeline shows, as frames: a lane for each run of one question, a span for each thing done in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pandas as pd

from docmind_lab.analysis.plots.look import seconds_text
from docmind_lab.analysis.plots.selection import StudyTables, comparable, rows_of
from docmind_lab.core.errors import ConfigurationError

_ROLES: Final = ("supervisor", "router", "planner", "retrieval", "synthesis", "validation")
_MARKS: Final = ("call", "late", "abandoned", "refused")


def lanes_frame(study: StudyTables, seed: int | None = None, run_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """The lanes of a timeline, top to bottom: one row per run of one question.

    Columns: lane (0, 1, …), label, run_id, alternative, seed, outcome, deadline_s, horizon_s, returned_at_s (NaN: no
    answer by the horizon), quiescent_at_s, work_censored, note (outcome and overruns in words).
    seed: of the question; by default the one with the most server work after the deadline, the least of equals.
    run_ids: keep these runs only.

    Raises: ConfigurationError for a seed or run that is not there, naming those that are, and for runs that do not
    belong in one picture.
    """
    runs = _chosen(study.runs, seed, run_ids)
    lanes = comparable(runs).rename(columns={"decision_timeout_s": "deadline_s"})
    twins = lanes["label"].duplicated(keep=False)
    lanes["label"] = lanes["label"].where(~twins, lanes["label"] + " " + lanes["run_id"])
    lanes["lane"] = range(len(lanes))
    lanes["note"] = [_lane_note(row) for row in rows_of(lanes)]
    columns = ["lane", "label", "run_id", "alternative", "seed", "outcome", "deadline_s", "horizon_s"]
    return lanes[[*columns, "returned_at_s", "quiescent_at_s", "work_censored", "note"]]


def timeline_frame(study: StudyTables, seed: int | None = None, run_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """What a timeline draws: one row per bar or mark.

    Columns: lane, run_id, alternative; role (ordered categorical: the rows of each lane); kind, call_id, attempt;
    mark (call: a client's call; late, abandoned: the part of a server's work after the deadline with the caller still
    waiting, and after the caller's return; refused); begun_at_s, ended_at_s; open (not ended by the horizon, and drawn
    up to it); sublane, sublanes (calls of one role at the same time share its row).
    Parameters and errors as for `lanes_frame`.
    """
    lanes = lanes_frame(study, seed, run_ids)
    calls = study.calls[study.calls["run_id"].isin(lanes["run_id"])]
    rows: list[dict[str, Any]] = []
    for lane in rows_of(lanes):
        spans = [
            span
            for call in rows_of(calls[calls["run_id"] == lane.run_id])
            for span in _spans(call, lane.deadline_s, lane.returned_at_s, lane.horizon_s)
        ]
        shared = {"lane": lane.lane, "run_id": lane.run_id, "alternative": lane.alternative}
        rows += [{**shared, **span} for span in _sublaned(spans)]
    columns = ["lane", "run_id", "alternative", "role", "kind", "call_id", "attempt", "mark"]
    columns += ["begun_at_s", "ended_at_s", "open", "sublane", "sublanes"]
    frame = pd.DataFrame(rows, columns=columns).astype({"begun_at_s": "float64", "ended_at_s": "float64"})
    present = [str(role) for role in frame["role"].unique()]
    roles = [role for role in _ROLES if role in present] + [role for role in present if role not in _ROLES]
    frame["role"] = pd.Categorical(frame["role"], categories=roles, ordered=True)
    frame["mark"] = pd.Categorical(frame["mark"], categories=_MARKS)
    return frame


def _chosen(runs: pd.DataFrame, seed: int | None, run_ids: Iterable[str] | None) -> pd.DataFrame:
    if run_ids is not None:
        wanted = list(run_ids)
        unknown = sorted(set(wanted) - set(runs["run_id"]))
        if unknown:
            raise ConfigurationError(f"run_ids has no run {', '.join(unknown)}; the ids are in the column run_id")
        runs = runs[runs["run_id"].isin(wanted)]
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
    """The outcome and both overruns, never mixed; a bound where observation ended first."""
    observed_s = run.horizon_s - run.deadline_s
    unanswered = math.isnan(run.returned_at_s)
    caller = f"> {seconds_text(observed_s)}" if unanswered else seconds_text(run.caller_overrun_s)
    work = f"> {seconds_text(observed_s)}" if run.work_censored else seconds_text(run.work_overrun_s)
    busy = run.busy_after_deadline_s
    server = "no server log" if math.isnan(busy) else f"server-busy late {seconds_text(busy)}"
    outcome = str(run.outcome).replace("_", " ")
    return f"{outcome}\ncaller overrun {caller}\nwork overrun {work}\n{server}"


def _spans(call: Any, deadline_s: float, returned_at_s: float, horizon_s: float) -> list[dict[str, Any]]:
    """The bar of a client's call, or the late parts of a server's."""
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


def _sublaned(spans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The spans with their place among those of the same role at the same time; parts of one call keep together."""
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
