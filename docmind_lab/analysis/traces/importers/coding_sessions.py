"""Sessions of coding agents, as a table of their requests.

Columns: session, agent, index, t_s, api_time_s, think_time_s, input_tokens, output_tokens, model, stop, type; one row
per request. Source: the table made of WEKA's kv-cache-tester traces (callanjfox/kv-cache-tester, Apache-2.0), 2025-26.

The main agent is 0. A sub-agent is 0.N: it stands at place N among the requests of the main agent, whose indices leave
it out, and its t_s count from its own start. A run is one turn of the main agent: from its first request after a person
had the floor until it stops with end_turn.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from docmind_lab.analysis.text import count_of
from docmind_lab.analysis.traces.importers.records import Record
from docmind_lab.analysis.traces.model import Span, TracedRun, Traces
from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN

_COLUMNS: Final = frozenset({"session", "agent", "t_s", "api_time_s", "stop"})
_MAIN: Final = "0"
_AGENT: Final = re.compile(r"0(\.\d+)?")
_DONE: Final = "end_turn"
# The tool that recorded the sessions gave a request up after so long.
_LONGEST_S: Final = 300.0
# Starts are whole seconds, so a request may seem to begin before the one that it waited for has ended.
_ROUNDED_S: Final = 1.0


def is_coding_sessions(record: Record) -> bool:
    """Whether a record is a request of a session."""
    return record.values.keys() >= _COLUMNS


def read_coding_sessions(records: Iterable[Record], source: str) -> Traces:
    """Return the turns of sessions as runs.

    Raises: RecordError for a row that cannot be read, and when there is no turn.
    """
    sessions: dict[str, list[_Request]] = {}
    for record in records:
        request = _Request.of(record)
        sessions.setdefault(request.session, []).append(request)
    runs: list[TracedRun] = []
    spans: list[Span] = []
    count: Counter[str] = Counter()
    for name, requests in sessions.items():
        count["all"] += len(requests)
        for turn in _turns(name, requests, source):
            runs.append(turn.run())
            spans += turn.spans()
            count["used"] += len(turn.main) + sum(len(each.requests) for each in turn.others)
            count["late"] += turn.last_at_s > turn.ended_at_s
            count["capped"] += sum(each.api_time_s >= _LONGEST_S for each in turn.main)
    if not runs:
        raise RecordError(f"{source} has no turn of a main agent (agent 0); export the requests of all agents")
    return Traces.of(runs, spans, notes=_notes(count, sum(run.outcome == "cut" for run in runs)))


def _notes(count: Counter[str], cut: int) -> tuple[str, ...]:
    outside = count["all"] - count["used"]
    ends = f"left out: {outside} of sub-agents outside any turn of the main agent" if outside else "none was left out"
    notes = [
        f"{count['used']} of {count['all']} requests were used; {ends}.",
        "A run is one turn of the main agent, from its first request after a person's pause until end_turn.",
        "The time between two requests of a turn is its tools, and also how long a person took to approve them.",
        "Requests begin at whole seconds. Their first tokens, and when tools began, are not known.",
        "A sub-agent counts as begun when the request before it had ended: when it began is not known.",
    ]
    if cut:
        notes.append(f"{count_of(cut, 'turn')} had not ended with the session, and count as cut.")
    if count["late"]:
        notes.append(f"In {count_of(count['late'], 'turn')} a sub-agent went on after the main agent had ended.")
    if count["capped"]:
        verb = "was" if count["capped"] == 1 else "were"
        notes.append(f"{count_of(count['capped'], 'request')} {verb} given up after {_LONGEST_S:g} s.")
    return tuple(notes)


@dataclass(frozen=True)
class _Request:
    """One request. Instants are seconds from the start of its session, of a sub-agent from its own start."""

    session: str
    agent: str
    place: int
    number: int
    started_at_s: float
    api_time_s: float
    input_tokens: float
    output_tokens: float
    model: str
    stop: str

    @classmethod
    def of(cls, record: Record) -> _Request:
        agent = record.required("agent")
        if not _AGENT.fullmatch(agent):
            raise RecordError(f"{record.where}: agent must be 0, or 0.N for a sub-agent at place N: got {agent!r:.60}")
        return cls(
            session=record.required("session"),
            agent=agent,
            place=int(agent.partition(".")[2] or 0),
            number=int(record.required_number("index")),
            started_at_s=record.required_number("t_s"),
            api_time_s=record.required_number("api_time_s"),
            input_tokens=record.number("input_tokens"),
            output_tokens=record.number("output_tokens"),
            model=record.text("model"),
            stop=record.text("stop"),
        )

    @property
    def ended_at_s(self) -> float:
        return self.started_at_s + self.api_time_s

    @property
    def span_id(self) -> str:
        return f"{self.agent}/{self.number}"

    @property
    def outcome(self) -> str:
        if self.api_time_s >= _LONGEST_S:
            return "cut"
        return "ok" if self.stop else "error"


@dataclass(frozen=True)
class _SubAgent:
    """A sub-agent. It began when the request before its place had ended: no instant of the table says it."""

    requests: list[_Request]
    after: _Request

    @property
    def span_id(self) -> str:
        return f"agent/{self.requests[0].agent}"

    @property
    def started_at_s(self) -> float:
        return self.after.ended_at_s

    @property
    def ended_at_s(self) -> float:
        return self.started_at_s + max(each.ended_at_s for each in self.requests)


@dataclass
class _Turn:
    """One turn: the requests of the main agent, and the sub-agents that it began."""

    trace_id: str
    session: str
    source: str
    main: list[_Request]
    others: list[_SubAgent] = field(default_factory=list)

    @property
    def begun_at_s(self) -> float:
        return self.main[0].started_at_s

    @property
    def ended_at_s(self) -> float:
        return self.main[-1].ended_at_s

    @property
    def last_at_s(self) -> float:
        return max([self.ended_at_s, *(each.ended_at_s for each in self.others)])

    def run(self) -> TracedRun:
        is_done = self.main[-1].stop == _DONE
        ended = self.ended_at_s - self.begun_at_s
        return TracedRun(
            trace_id=self.trace_id,
            session=self.session,
            source=self.source,
            ended_at_s=ended if is_done else NAN,
            observed_until_s=self.last_at_s - self.begun_at_s if is_done else ended,
            outcome="answered" if is_done else "cut",
        )

    def spans(self) -> Iterator[Span]:
        before: list[_Request] = []
        for request in self.main:
            waited = [each.span_id for each in before]
            waited += [
                each.span_id
                for each in self.others
                if each.after in before and each.ended_at_s <= request.started_at_s + _ROUNDED_S
            ]
            yield self._span(request, "", 0.0, waited)
            before = [request]
        for agent in self.others:
            yield Span(
                trace_id=self.trace_id,
                span_id=agent.span_id,
                parent_id="",
                role="sub-agent",
                kind="agent",
                started_at_s=agent.started_at_s - self.begun_at_s,
                ended_at_s=agent.ended_at_s - self.begun_at_s,
                after=json.dumps([agent.after.span_id]),
            )
            before = []
            for request in agent.requests:
                yield self._span(request, agent.span_id, agent.started_at_s, [each.span_id for each in before])
                before = [request]

    def _span(self, request: _Request, parent_id: str, begun_at_s: float, waited: list[str]) -> Span:
        return Span(
            trace_id=self.trace_id,
            span_id=request.span_id,
            parent_id=parent_id,
            role="sub-agent" if parent_id else "main",
            kind="llm",
            started_at_s=begun_at_s + request.started_at_s - self.begun_at_s,
            ended_at_s=begun_at_s + request.ended_at_s - self.begun_at_s,
            outcome=request.outcome,
            input_tokens=request.input_tokens,
            output_tokens=request.output_tokens,
            model=request.model,
            after=json.dumps(waited),
        )


def _turns(session: str, requests: list[_Request], source: str) -> list[_Turn]:
    turns: list[_Turn] = []
    is_over = True
    for request in sorted((each for each in requests if each.agent == _MAIN), key=lambda each: each.number):
        if is_over:
            turns.append(_Turn(f"{session}/{len(turns)}", session, source, []))
        turns[-1].main.append(request)
        is_over = request.stop == _DONE
    agents: dict[str, list[_Request]] = {}
    for request in sorted((each for each in requests if each.agent != _MAIN), key=lambda each: each.number):
        agents.setdefault(request.agent, []).append(request)
    for of_agent in agents.values():
        for turn in turns:
            before = [each for each in turn.main if each.number < of_agent[0].place]
            # After the last request of a turn it is of no turn: whatever it did, the person had the floor.
            if before and (before[-1] is not turn.main[-1] or before[-1].stop != _DONE):
                is_next = turn is turns[-1] or turns[turns.index(turn) + 1].main[0].number > of_agent[0].place
                if is_next:
                    turn.others.append(_SubAgent(of_agent, before[-1]))
    return turns
