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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.text import count_of
from docmind_lab.tables.traces.importers.export_records import Record
from docmind_lab.tables.traces.trace_tables import Span, TracedRun, Traces

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
            count["capped"] += sum(each.span.outcome == "cut" for each in turn.main)
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
    """One request, as a span of no run. Its instants are seconds from the start of its session or sub-agent."""

    session: str
    agent: str
    number: int
    span: Span
    is_last: bool

    @classmethod
    def of(cls, record: Record) -> _Request:
        agent = record.required("agent")
        if not _AGENT.fullmatch(agent):
            raise RecordError(f"{record.where}: agent must be 0, or 0.N for a sub-agent at place N: got {agent!r:.60}")
        session, number = record.required("session"), int(record.required_number("index"))
        started_at_s, api_time_s = record.required_number("t_s"), record.required_number("api_time_s")
        stop = record.text("stop")
        span = Span(
            trace_id="",
            span_id=f"{agent}/{number}",
            parent_id="" if agent == _MAIN else f"agent/{agent}",
            role="main" if agent == _MAIN else "sub-agent",
            kind="llm",
            started_at_s=started_at_s,
            ended_at_s=started_at_s + api_time_s,
            outcome="cut" if api_time_s >= _LONGEST_S else "ok" if stop else "error",
            input_tokens=record.number("input_tokens"),
            output_tokens=record.number("output_tokens"),
            model=record.text("model"),
        )
        return cls(session, agent, number, span, stop == _DONE)


@dataclass(frozen=True)
class _SubAgent:
    """A sub-agent. It began when the request before its place had ended: no instant of the table says it."""

    requests: list[_Request]
    after: _Request

    @property
    def span(self) -> Span:
        begun_at_s, last_at_s = self.after.span.ended_at_s, max(each.span.ended_at_s for each in self.requests)
        name, after = self.requests[0].span.parent_id, json.dumps([self.after.span.span_id])
        return Span("", name, "", "sub-agent", "agent", begun_at_s, begun_at_s + last_at_s, after=after)


@dataclass
class _Turn:
    """One turn: the requests of the main agent, and the sub-agents that it began."""

    trace_id: str
    session: str
    source: str
    main: list[_Request]
    others: list[_SubAgent] = field(default_factory=list)

    @property
    def ended_at_s(self) -> float:
        return self.main[-1].span.ended_at_s

    @property
    def last_at_s(self) -> float:
        return max([self.ended_at_s, *(each.span.ended_at_s for each in self.others)])

    def run(self) -> TracedRun:
        is_done, begun_at_s = self.main[-1].is_last, self.main[0].span.started_at_s
        ended = self.ended_at_s - begun_at_s
        return TracedRun(
            trace_id=self.trace_id,
            session=self.session,
            source=self.source,
            ended_at_s=ended if is_done else NAN,
            observed_until_s=self.last_at_s - begun_at_s if is_done else ended,
            outcome="answered" if is_done else "cut",
        )

    def spans(self) -> Iterator[Span]:
        for before, request in zip([None, *self.main], self.main, strict=False):
            latest_s = request.span.started_at_s + _ROUNDED_S
            others = [each for each in self.others if each.after is before and each.span.ended_at_s <= latest_s]
            yield self._placed(request.span, [*([before] if before else []), *others])
        for agent in self.others:
            yield self._placed(agent.span)
            for before, request in zip([None, *agent.requests], agent.requests, strict=False):
                yield self._placed(request.span, [before] if before else [], agent.span.started_at_s)

    def _placed(self, span: Span, waited: Sequence[_Request | _SubAgent] = (), begun_at_s: float = 0.0) -> Span:
        """Return a span of the run, with instants from its start on and with what it waited for."""
        first_at_s = self.main[0].span.started_at_s
        return replace(
            span,
            trace_id=self.trace_id,
            started_at_s=begun_at_s + span.started_at_s - first_at_s,
            ended_at_s=begun_at_s + span.ended_at_s - first_at_s,
            after=json.dumps([each.span.span_id for each in waited]) if waited else span.after,
        )


def _turns(session: str, requests: list[_Request], source: str) -> list[_Turn]:
    turns: list[_Turn] = []
    agents: dict[str, list[_Request]] = {}
    is_over = True
    for request in sorted(requests, key=lambda each: each.number):
        if request.agent != _MAIN:
            agents.setdefault(request.agent, []).append(request)
            continue
        if is_over:
            turns.append(_Turn(f"{session}/{len(turns)}", session, source, []))
        turns[-1].main.append(request)
        is_over = request.is_last
    for agent, of_agent in agents.items():
        place = int(agent.partition(".")[2])
        begun = [turn for turn in turns if turn.main[0].number < place]
        before = [each for each in begun[-1].main if each.number < place] if begun else []
        # After the last request of a turn it is of no turn: whatever it did, the person had the floor.
        if before and not before[-1].is_last:
            begun[-1].others.append(_SubAgent(of_agent, before[-1]))
    return turns
