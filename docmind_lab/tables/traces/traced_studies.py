"""Traces of the lab's own studies: what the seam and the service's log saw of each run.

control = study.runs[study.runs["alternative"] == "unguarded"]
traces = traces_of_study(study, control["run_id"])
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN
from docmind_lab.tables.frames import StudyTables, rows_by, rows_of
from docmind_lab.tables.traces.rules import CONTROLS
from docmind_lab.tables.traces.trace_tables import OWN_ENDS, Generation, Span, TracedRun, Traces

_LABELS: Final = ("workload", "question_id", "latency_profile", "fault", "server_behaviour", "second_budgets", "clock")
"""Columns of `runs` that say which condition a trace is of."""

_ENDS: Final[Mapping[str, str]] = {"ok": "ok", "error": "error", "timeout": "cut", "cancelled": "cut"}
# A call and the node around it begin and end together; their instants are read one after the other.
_TOGETHER_S: Final = 1e-6


def traces_of_study(study: StudyTables, run_ids: Iterable[str] | None = None) -> Traces:
    """Return the runs of a study as traces.

    A run under an alternative that cut it shows what happened until then; the control shows all of it.

    Args:
        study: The study, with its three tables.
        run_ids: The runs; None means all runs of the control.

    Raises:
        ConfigurationError: There is no such run.
    """
    runs = study.runs
    if run_ids is None:
        runs = runs[runs["alternative"].astype("str").isin(CONTROLS)]
        if runs.empty:
            raise ConfigurationError("the study has no run without a deadline: measure unguarded too, or name run_ids")
    else:
        ids = list(run_ids)
        runs = runs[runs["run_id"].isin(ids)]
        missing = set(ids) - set(runs["run_id"])
        if missing:
            raise ConfigurationError(f"the study has no run {min(missing)}")
    calls, events = (
        rows_by(table[table["run_id"].isin(runs["run_id"])], "run_id") for table in (study.calls, study.events)
    )
    systems = getattr(study, "manifest", {}).get("systems", {})
    traced, spans, generation = [], [], []
    for run in rows_of(runs):
        adapts = bool(systems.get(str(run["workload"]), {}).get("adapts", False))
        of_run = _RunOfStudy(run, calls.get(run["run_id"], []), events.get(run["run_id"], []), adapts)
        traced.append(of_run.run())
        spans += of_run.spans()
        generation += of_run.generation()
    return Traces.of(traced, spans, generation)


class _RunOfStudy:
    """One run of a study: its nodes, with the calls that were made inside of them."""

    def __init__(
        self, run: Mapping[str, Any], calls: list[dict[str, Any]], events: list[dict[str, Any]], adapts: bool
    ) -> None:
        self._run, self._events, self._adapts = run, events, adapts
        self._trace_id = str(run["run_id"])
        self._horizon_s = float(run["horizon_s"])
        self._client = [call for call in calls if call["seen_from"] == "client" and call["outcome"] != "refused"]
        self._server = {(call["call_id"], call["attempt"]): call for call in calls if call["seen_from"] == "server"}
        self._has_log = not math.isnan(run["busy_after_deadline_s"])
        self._outer = {call["parent_call_id"] for call in self._client}
        self._nodes = _nodes(events)

    def run(self) -> TracedRun:
        row, returned_at_s = self._run, float(self._run["returned_at_s"])
        outcome = str(row["outcome"]) if row["outcome"] in OWN_ENDS else "cut"
        first = [event["at_s"] for event in self._events if event["event"] == "result_available"]
        return TracedRun(
            trace_id=self._trace_id,
            session=str(row["seed"]),
            source=str(row["study_id"]),
            ended_at_s=NAN if outcome == "cut" else returned_at_s,
            observed_until_s=self._horizon_s
            if math.isnan(returned_at_s)
            else max(returned_at_s, row["quiescent_at_s"]),
            outcome=outcome,
            limit_s=float(row["decision_timeout_s"]) if outcome == "cut" and not math.isnan(returned_at_s) else NAN,
            result_from_s=min(first, default=NAN),
            retries=str(row["retries"]),
            # A hop that has adopted a deadline stops by itself.
            adapts=self._adapts or float(row["adoption"]) > 0,
            labels=json.dumps({name: str(row[name]) for name in _LABELS}),
        )

    def spans(self) -> list[Span]:
        spans = [
            Span(
                trace_id=self._trace_id,
                span_id=node.span_id,
                parent_id=node.parent_id,
                role=node.role,
                kind="step",
                started_at_s=node.started_at_s,
                ended_at_s=node.ended_at_s,
                outcome=node.outcome,
            )
            for node in self._nodes
        ]
        home = self._homes()
        seen = set()
        for call in self._client:
            key = (call["call_id"], call["attempt"])
            seen.add(key)
            spans.append(self._span(call, self._server.get(key), home.get(call["call_id"], "")))
        # The requests of another process are seen by the server alone: it made them while it worked on one of these.
        pairs = [(call, self._server.get((call["call_id"], call["attempt"]), call)) for call in self._client]
        for key, call in self._server.items():
            if key not in seen:
                outer = [
                    (served["started_at_s"], _span_id(client["call_id"], client["attempt"]))
                    for client, served in pairs
                    if served["started_at_s"] <= call["started_at_s"] <= _or_inf(served["ended_at_s"])
                ]
                spans.append(self._span(call, call, max(outer, default=(0.0, ""))[1]))
        return spans

    def generation(self) -> list[Generation]:
        rows = []
        for event in self._events:
            if event["event"] == "tokens_generated":
                detail = json.loads(event["detail"])
                span_id = _span_id(detail["call_id"], detail["attempt"])
                rows.append(
                    Generation(self._trace_id, span_id, detail["begun_at_s"], event["at_s"], float(detail["tokens"]))
                )
        return rows

    def _span(self, call: Mapping[str, Any], server: Mapping[str, Any] | None, parent_id: str) -> Span:
        ended_at_s = float(call["ended_at_s"])
        return Span(
            trace_id=self._trace_id,
            span_id=_span_id(call["call_id"], call["attempt"]),
            parent_id=parent_id,
            role=str(call["role"]),
            kind=str(call["kind"]) if server is not None or self._asks_a_server(call) else "agent",
            started_at_s=float(call["started_at_s"]),
            ended_at_s=ended_at_s,
            first_byte_at_s=float(call["first_byte_at_s"]),
            first_token_at_s=float(call["first_token_at_s"]),
            outcome="open" if math.isnan(ended_at_s) else _ENDS.get(str(call["outcome"]), "ok"),
            attempt=int(call["attempt"]),
            input_tokens=float(call["input_tokens"]),
            output_tokens=float(call["output_tokens"] if server is None else server["output_tokens"]),
            server_started_at_s=NAN if server is None else float(server["started_at_s"]),
            server_ended_at_s=NAN if server is None else float(server["ended_at_s"]),
            queue_wait_s=0.0 if server is None else float(server["queue_wait_s"]),
        )

    def _asks_a_server(self, call: Mapping[str, Any]) -> bool:
        """Whether a call without a row of a server may be a request: a tool that makes some, or none, is not."""
        never_served = self._has_log and (call["kind"] == "tool" or call["outcome"] == "ok")
        return not never_served and call["call_id"] not in self._outer

    def _homes(self) -> dict[str, str]:
        """Return logical call → the innermost node that it was made in. Tables do not say it.

        It is the latest of the nodes that were at work all the while and are of the call's role. Where none is, it is
        one that began and ended with it, then the only one that made calls for this role before, which this call may
        outlive, and then any node at work.
        """
        attempts: dict[str, list[dict[str, Any]]] = {}
        for call in self._client:
            attempts.setdefault(call["call_id"], []).append(call)
        home: dict[str, str] = {}
        of_role: dict[str, set[str]] = {}
        for call_id, calls in attempts.items():
            role, started = str(calls[0]["role"]), min(call["started_at_s"] for call in calls)
            ended = max(_or_inf(call["ended_at_s"]) for call in calls)
            begun = [node for node in self._nodes if node.started_at_s <= started + _TOGETHER_S]
            at_work = [node for node in begun if node.end_or_inf >= started - _TOGETHER_S]
            throughout = [node for node in at_work if node.end_or_inf >= ended - _TOGETHER_S]
            alone = of_role.get(role, set()) if len(of_role.get(role, set())) == 1 else set()
            around = (
                [node for node in throughout if node.role == role]
                or [
                    node
                    for node in throughout
                    if max(abs(node.started_at_s - started), abs(node.end_or_inf - ended)) <= _TOGETHER_S
                ]
                or [node for node in at_work if node.span_id in alone]
                or throughout
                or at_work
            )
            if around:
                home[call_id] = min(around, key=lambda node: (-node.depth, -node.started_at_s, node.end_or_inf)).span_id
                of_role.setdefault(role, set()).add(home[call_id])
        return home


class _Node:
    """One node of a graph at work."""

    def __init__(self, number: int, role: str, path: str, started_at_s: float) -> None:
        self.span_id, self.role, self.path = f"node/{path}/{number}", role, path
        self.depth = path.count("/")
        self.started_at_s, self.ended_at_s = started_at_s, NAN
        self.outcome, self.parent_id = "open", ""

    @property
    def end_or_inf(self) -> float:
        return _or_inf(self.ended_at_s)


def _nodes(events: Iterable[Mapping[str, Any]]) -> list[_Node]:
    """Return the nodes of a run in the order of their start, each within the one that it was at work in."""
    nodes: list[_Node] = []
    at_work: dict[str, list[_Node]] = {}
    number: dict[str, int] = {}
    ends: list[tuple[float, Mapping[str, Any]]] = []
    for event in events:
        if event["event"] == "node_started":
            path = str(json.loads(event["detail"])["node"])
            number[path] = number.get(path, 0) + 1
            node = _Node(number[path], str(event["role"]), path, float(event["at_s"]))
            nodes.append(node)
            at_work.setdefault(path, []).append(node)
        elif event["event"] == "node_ended":
            ends.append((float(event["at_s"]), json.loads(event["detail"])))
    for at_s, detail in ends:
        # Nodes of one name that began together are the same to everybody; older tables do not say when they began.
        waiting = at_work.get(str(detail["node"]), [])
        begun_at_s = float(detail.get("begun_at_s", waiting[0].started_at_s if waiting else NAN))
        begun = [node for node in waiting if abs(node.started_at_s - begun_at_s) <= _TOGETHER_S]
        if begun:
            begun[0].ended_at_s = at_s
            begun[0].outcome = "ok" if detail.get("outcome") in ("ok", "ParentCommand") else "error"
            waiting.remove(begun[0])
    for node in nodes:
        outer = node.path.rpartition("/")[0]
        around = [
            each
            for each in nodes
            if each.path == outer and each.started_at_s <= node.started_at_s and each.end_or_inf >= node.end_or_inf
        ]
        if around:
            node.parent_id = min(around, key=lambda each: each.end_or_inf - each.started_at_s).span_id
    return nodes


def _or_inf(instant: float) -> float:
    return math.inf if math.isnan(instant) else float(instant)


def _span_id(call_id: str, attempt: int) -> str:
    return f"{call_id}#{attempt}"
