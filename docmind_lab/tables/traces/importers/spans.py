"""Spans as tracing tools export them, and the runs that they are of."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.core.text import count_of
from docmind_lab.tables.traces.importers.export_records import Record
from docmind_lab.tables.traces.trace_tables import CALL_KINDS, Span, TracedRun, Traces, upwards, well_formed

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# The year 2262, as far as 64 bits go.
_LAST_NS: Final = 1 << 63
_CUT: Final = re.compile(r"cancel|timeout|timed.?out|deadline", re.IGNORECASE)
_INTERRUPTED: Final = re.compile(r"interrupt", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExportedSpan:
    """One span of an export. Instants are nanoseconds since 1970, which a float would round.

    Args:
        where: File and line.
        trace_id: The trace that it is of.
        span_id: The span within it.
        parent_id: The span around it; empty for none.
        name: Its name.
        kind: One of the kinds of `Span`; empty for anything else.
        started_ns: It began.
        ended_ns: It ended; None if it was not seen to end.
        first_ns: Its first token came; None where not known.
        outcome: ok, error, cut (a timeout or a cancellation) or interrupted (to ask a person).
        input_tokens: Tokens read; NaN where not known.
        output_tokens: Tokens written; NaN where not known.
        model: The model; empty where not known.
        node: The node of a graph, or the agent, that it belongs to; empty where not known.
        session: The conversation; empty where not known.
    """

    where: str
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: str
    started_ns: int
    ended_ns: int | None
    first_ns: int | None = None
    outcome: str = "ok"
    input_tokens: float = NAN
    output_tokens: float = NAN
    model: str = ""
    node: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        for name in ("trace_id", "span_id", "parent_id", "name", "model", "node", "session"):
            object.__setattr__(self, name, well_formed(getattr(self, name)))
        if not self.span_id:
            raise RecordError(f"{self.where}: span {self.name!r} has no id of its own; export spans with their ids")
        for instant in (self.started_ns, self.ended_ns, self.first_ns):
            if instant is not None and not 0 <= instant < _LAST_NS:
                raise RecordError(f"{self.where}: span {self.name!r} has an instant that is not of these centuries")
        if self.ended_ns is not None and self.ended_ns < self.started_ns:
            raise RecordError(f"{self.where}: span {self.name!r} ends before it begins; check the clock that wrote it")


@dataclass(frozen=True)
class SpanFormat:
    """A format of spans, which a latency profile can be fitted to as well.

    recognises: whether a record is of this format. spans: yields the spans of records, and raises RecordError for one
    that cannot be read.
    """

    tool: str
    recognises: Callable[[Record], bool]
    spans: Callable[[Iterable[Record]], Iterator[ExportedSpan]]


def instant_ns(record: Record, *paths: str) -> int | None:
    """Return an instant as nanoseconds since 1970, or None for none. Raises: RecordError when it cannot be read."""
    value = record.get(*paths)
    if value is None:
        return None
    try:
        if isinstance(value, str):
            value = dt.datetime.fromisoformat(value)
        if isinstance(value, dt.datetime):
            since = (value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - _EPOCH
            return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
    except (ValueError, OverflowError):
        pass
    raise RecordError(
        f"{record.where}: {paths[0]} is {value!r:.60}, and an instant is expected, such as 2026-11-23T09:30:00Z"
    )


def required_instant_ns(record: Record, *paths: str) -> int:
    """Return an instant as `instant_ns`. Raises: RecordError when it is missing, too."""
    value = instant_ns(record, *paths)
    if value is None:
        raise RecordError(f"{record.where}: {paths[0]} is missing; export the records with their times")
    return value


def outcome_of_error(error: str) -> str:
    """Return how a call ended from the name of its error; empty means that there was none. Its text is not looked at.

    error: a name such as TimeoutError, or a name followed by a text in parentheses or after a colon.
    """
    if not error.strip():
        return "ok"
    name = re.split(r"[(:\s]", error.strip(), maxsplit=1)[0]
    if _INTERRUPTED.search(name) and "Keyboard" not in name:
        return "interrupted"
    return "cut" if _CUT.search(name) else "error"


def innermost(spans: Sequence[ExportedSpan]) -> tuple[list[ExportedSpan], int]:
    """Return the spans without those around another of the same kind, and how many those are.

    Two instrumentations may have seen one call, and the inner one is the request. What was inside of a span that is
    left out is then inside of the one around that.
    """
    of_call = ("llm", "retrieval")
    outer = {(span.trace_id, span.parent_id, span.kind) for span in spans if span.kind in of_call}
    left_out = [span for span in spans if (span.trace_id, span.span_id, span.kind) in outer]
    return _without(left_out, spans), len({(span.trace_id, span.span_id) for span in left_out})


def _without(left_out: Iterable[ExportedSpan], spans: Iterable[ExportedSpan]) -> list[ExportedSpan]:
    """Return the other spans, each inside of the next span around it that is not left out."""
    around = {(span.trace_id, span.span_id): (span.trace_id, span.parent_id) for span in left_out}
    result = []
    for span in spans:
        if (span.trace_id, span.span_id) not in around:
            *_, (_, parent) = upwards((span.trace_id, span.parent_id), around.get)
            result.append(span if parent == span.parent_id else replace(span, parent_id=parent))
    return result


def traces_of_spans(spans: Iterable[ExportedSpan], source: str) -> Traces:
    """Return the runs of exported spans: one for each trace.

    A run begins with its first span and ends with the last of those that are in no other. A span of no known kind is
    left out, unless it is at the top and has a length: then it counts as the agent.

    source: what they were read from, for the tables. Raises: RecordError (there is no run in them).
    """
    by_trace: dict[str, dict[str, ExportedSpan]] = {}
    count: Counter[str] = Counter()
    for span in spans:
        count["all"] += 1
        of_trace = by_trace.setdefault(span.trace_id, {})
        count["twice"] += span.span_id in of_trace
        of_trace[span.span_id] = span
    runs, rows = [], []
    for trace_id, of_trace in by_trace.items():
        if not any(span.kind for span in of_trace.values()):
            count["traces_without"] += 1
            count["without"] += len(of_trace)
            continue
        run, of_run = _run(trace_id, of_trace, source, count)
        runs.append(run)
        rows += of_run
    if not runs:
        raise RecordError(
            f"{source} has no span of a model call, a tool, a retrieval or an agent ({count['all']} spans were read); "
            "export the spans of an instrumentation that follows the conventions gen_ai or openinference"
        )
    return Traces.of(runs, rows, notes=_notes(count, runs, len(rows)))


def _notes(count: Counter[str], runs: list[TracedRun], used: int) -> tuple[str, ...]:
    reasons = {
        "without": f"of {count_of(count['traces_without'], 'trace')} without any call",
        "other": "neither calls nor agents nor steps",
        "outer": "around another span of the same call",
        "twice": "exported twice",
    }
    left_out = [f"{count[name]} {reason}" for name, reason in reasons.items() if count[name]]
    ends = f"left out: {', '.join(left_out)}" if left_out else "none was left out"
    notes = [f"{used} of {count['all']} spans were used; {ends}."]
    if count["tools"]:
        notes.append(f"Counted as agents: {count_of(count['tools'], 'tool')} that made calls.")
    if count["first"]:
        notes.append(f"Left out: {count_of(count['first'], 'first token')} outside the call.")
    if all(run.session == run.trace_id for run in runs):
        notes.append("Nothing says which runs are of one conversation, so each counts as independent.")
    return tuple(notes)


def _run(
    trace_id: str, of_trace: Mapping[str, ExportedSpan], source: str, count: Counter[str]
) -> tuple[TracedRun, list[Span]]:
    spans, outer = innermost(_without_cycles(of_trace))
    count["outer"] += outer
    # What has no length, such as an event that is noted long after, is no agent.
    agents = {span.span_id for span in spans if span.parent_id not in of_trace and span.ended_ns != span.started_ns}
    spans = [replace(span, kind="agent") if not span.kind and span.span_id in agents else span for span in spans]
    other = [span for span in spans if not span.kind]
    count["other"] += len(other)
    spans = _without(other, spans)
    asks = {span.parent_id for span in spans if span.kind in CALL_KINDS}
    tools = {span.span_id for span in spans if span.kind == "tool" and span.span_id in asks}
    count["tools"] += len(tools)
    spans = [replace(span, kind="agent") if span.span_id in tools else span for span in spans]

    begun = min(span.started_ns for span in spans)
    by_id = {span.span_id: span for span in spans}
    tops = [span for span in spans if span.parent_id not in by_id]
    last = max(span.started_ns if span.ended_ns is None else span.ended_ns for span in spans)
    outcome = _outcome(tops)
    ended = None if outcome == "cut" else max(span.ended_ns or 0 for span in tops)
    run = TracedRun(
        trace_id=trace_id,
        session=next((span.session for span in spans if span.session), trace_id),
        source=source,
        ended_at_s=NAN if ended is None else (ended - begun) / 1e9,
        observed_until_s=(last - begun) / 1e9,
        outcome=outcome,
    )
    # What holds others comes before them, also where both begin at once.
    spans.sort(key=lambda span: (span.started_ns, -(last if span.ended_ns is None else span.ended_ns)))
    return run, [_span(span, by_id, begun, count) for span in spans]


def _without_cycles(of_trace: Mapping[str, ExportedSpan]) -> list[ExportedSpan]:
    """Return the spans of a trace; one that is inside of itself, also by way of others, is at the top."""
    result, parents = [], {span_id: span.parent_id for span_id, span in of_trace.items()}
    for span_id, span in of_trace.items():
        if span_id in upwards(parents[span_id], parents.get):
            parents[span_id] = ""
            span = replace(span, parent_id="")
        result.append(span)
    return result


def _outcome(tops: Sequence[ExportedSpan]) -> str:
    """How the run ended, as its outermost spans did. One that was cut says only that it went on until then."""
    outcomes = {"cut" if span.ended_ns is None else span.outcome for span in tops}
    for outcome, ending in (("cut", "cut"), ("error", "failed"), ("interrupted", "interrupted")):
        if outcome in outcomes:
            return ending
    return "answered"


def _span(span: ExportedSpan, by_id: Mapping[str, ExportedSpan], begun: int, count: Counter[str]) -> Span:
    first = span.first_ns
    if first is not None and (first < span.started_ns or (span.ended_ns is not None and first > span.ended_ns)):
        count["first"] += 1
        first = None
    first_at_s = NAN if first is None else (first - begun) / 1e9
    outcomes = {"interrupted": "ok"}
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_id=span.parent_id if span.parent_id in by_id else "",
        role=span.node or _agent_around(span, by_id) or span.name,
        kind=span.kind,
        started_at_s=(span.started_ns - begun) / 1e9,
        ended_at_s=NAN if span.ended_ns is None else (span.ended_ns - begun) / 1e9,
        first_byte_at_s=first_at_s,
        first_token_at_s=first_at_s,
        outcome="open" if span.ended_ns is None else outcomes.get(span.outcome, span.outcome),
        input_tokens=span.input_tokens,
        output_tokens=span.output_tokens,
        model=span.model,
    )


def _agent_around(span: ExportedSpan, by_id: Mapping[str, ExportedSpan]) -> str:
    """The name of the innermost agent or step around a call; empty for none, and for what is no call."""
    if span.kind not in CALL_KINDS:
        return ""
    around = upwards(span.parent_id, lambda each: by_id[each].parent_id if each in by_id else None)
    return next((by_id[each].name for each in around if each in by_id and by_id[each].kind in ("agent", "step")), "")
