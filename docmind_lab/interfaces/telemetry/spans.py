"""A measured run as spans: one for the run, one for each request of a client, by OpenTelemetry's conventions.

    invoke_workflow supervisor                 the run, until its caller returned
        chat docmind-scripted                  a request to the model, retries each by themselves
        retrieval handbook                     a request of a search
        event docmind.deadline, docmind.call.refused

Everything is read off the tables of the run, after it: names and numbers, which is all they hold. A call that was
abandoned outlives the span of its run, as it did in life. Source: the semantic conventions for generative AI, spans, as
in opentelemetry-semantic-conventions 0.66b.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from docmind_lab.analysis.tables.records import CallRecord, RunRecord
from docmind_lab.core.telemetry_names import (
    ERROR_TYPE,
    GIVEN,
    INVOKE_WORKFLOW,
    OPERATION,
    REMAINING_AT_START,
    RUN_ATTRIBUTES,
    WORKFLOW,
)
from docmind_lab.experiments.measurement.run import MeasuredRun

Value = str | bool | int | float
Attributes = Mapping[str, Value]

_OPERATIONS: Final[Mapping[str, str]] = {
    "llm": "chat",
    "retrieval": "retrieval",
    "tool": "execute_tool",
    "peer": "invoke_agent",
}
_CALL_ATTRIBUTES: Final[Mapping[str, str]] = {
    "run_id": "docmind.run.id",
    "call_id": "docmind.call.id",
    "attempt": "docmind.call.attempt",
    "step": "docmind.call.step",
    "outcome": "docmind.call.outcome",
    "queue_wait_s": "docmind.call.queue_wait_s",
    "timeout_s": "docmind.deadline.cap_s",
    "remaining_at_start_s": REMAINING_AT_START,
    "overrun_s": "docmind.deadline.overrun_s",
    "started_after_deadline": "docmind.deadline.started_after",
    "ended_after_return": "docmind.deadline.ended_after_return",
}


@dataclass(frozen=True)
class About:
    """Facts about the system that the tables lack: which model and corpus it uses, and their addresses.

    Args:
        model: Name of the model in requests.
        corpus: Name of what is searched.
        model_address: Host and port of the model; None for a simulated one.
        store_address: Host and port of the vector store, likewise.
    """

    model: str
    corpus: str
    model_address: tuple[str, int | None] | None = None
    store_address: tuple[str, int | None] | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> About:
        """Read the facts from the manifest of the runs."""
        settings = manifest.get("settings", {})
        llm, database = settings.get("llm", {}), settings.get("database", {})
        return cls(
            model=str(llm.get("model", "")),
            corpus=str(manifest.get("design", {}).get("corpus", "")),
            model_address=_address(llm.get("base_url")),
            store_address=_address(database.get("qdrant_url")),
        )


def _address(url: str | None) -> tuple[str, int | None] | None:
    if not url:
        return None
    parts = urlsplit(url)
    return (parts.hostname, parts.port) if parts.hostname else None


@dataclass(frozen=True)
class SpanEvent:
    """An event within a span.

    Args:
        name: Name by OpenTelemetry's conventions.
        at_s: Seconds since the run's start.
        attributes: Values by attribute name.
    """

    name: str
    at_s: float
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class SpanRow:
    """One span: its name, its times and its attributes.

    Args:
        name: Name by OpenTelemetry's conventions.
        kind: "internal" for a run, "client" for a request.
        started_at_s: Seconds since the run's start.
        ended_at_s: Seconds since the run's start.
        attributes: Values by attribute name.
        error_type: Empty for a span that went well.
        events: Events within the span.
    """

    name: str
    kind: Literal["internal", "client"]
    started_at_s: float
    ended_at_s: float
    attributes: Attributes
    error_type: str = ""
    events: tuple[SpanEvent, ...] = ()


@dataclass(frozen=True)
class RunTrace:
    """The spans of one run.

    Args:
        run: The span of the run itself.
        calls: The spans inside it, by their start.
    """

    run: SpanRow
    calls: tuple[SpanRow, ...]


def trace_of(measured: MeasuredRun, about: About) -> RunTrace:
    """Return the spans of a run as its client saw it; what its servers did is in the tables.

    Args:
        measured: The run.
        about: Facts about the system that the tables lack.
    """
    run = measured.run
    seen = [call for call in measured.calls if call.seen_from == "client"]
    refused = [call for call in seen if call.outcome == "refused"]
    sent = sorted((call for call in seen if call.outcome != "refused"), key=lambda call: call.started_at_s)
    return RunTrace(
        run=_run_span(measured, refused), calls=tuple(_call_span(call, run.horizon_s, about) for call in sent)
    )


def _run_span(measured: MeasuredRun, refused: list[CallRecord]) -> SpanRow:
    run = measured.run
    attributes = {OPERATION: INVOKE_WORKFLOW, WORKFLOW: run.workload}
    error_type = "" if run.outcome in GIVEN else measured.outcome.error_type or run.stop_reason or run.outcome
    ended_at_s = run.horizon_s if math.isnan(run.returned_at_s) else run.returned_at_s
    events = [SpanEvent("docmind.deadline", run.decision_timeout_s)] if run.decision_timeout_s <= ended_at_s else []
    events += [
        SpanEvent(
            "docmind.call.refused",
            call.started_at_s,
            {"gen_ai.agent.name": call.role, OPERATION: _OPERATIONS.get(call.kind, call.kind)},
        )
        for call in refused
    ]
    return SpanRow(
        name=f"{INVOKE_WORKFLOW} {run.workload}",
        kind="internal",
        started_at_s=0.0,
        ended_at_s=ended_at_s,
        attributes=attributes | _attributes(run, RUN_ATTRIBUTES) | _error(error_type),
        error_type=error_type,
        events=tuple(sorted(events, key=lambda event: event.at_s)),
    )


def _call_span(call: CallRecord, horizon_s: float, about: About) -> SpanRow:
    operation = _OPERATIONS.get(call.kind, call.kind)
    attributes: dict[str, Value] = {OPERATION: operation, "gen_ai.agent.name": call.role}
    target, address = call.role, None
    if call.kind == "llm":
        target, address = about.model, about.model_address
        # The protocol spoken; who is behind an address is not known.
        attributes |= {"gen_ai.provider.name": "openai", "gen_ai.request.model": about.model}
    elif call.kind == "retrieval":
        target, address = about.corpus, about.store_address
        attributes |= {"gen_ai.data_source.id": about.corpus, "db.system.name": "qdrant"}
    elif call.kind == "tool":
        attributes["gen_ai.tool.name"] = call.role
    if address is not None:
        host, port = address
        attributes |= {"server.address": host} | ({} if port is None else {"server.port": port})
    for side in ("input", "output"):
        tokens = getattr(call, f"{side}_tokens")
        if not math.isnan(tokens):
            attributes[f"gen_ai.usage.{side}_tokens"] = int(tokens)
    # An answer that came when nobody waited any more is no error of the call.
    error_type = call.error_type or ("" if call.outcome == "ok" or _came_late(call) else call.outcome)
    return SpanRow(
        name=f"{operation} {target}".rstrip(),
        kind="client",
        started_at_s=call.started_at_s,
        ended_at_s=horizon_s if math.isnan(call.ended_at_s) else call.ended_at_s,
        attributes=attributes | _attributes(call, _CALL_ATTRIBUTES) | _error(error_type),
        error_type=error_type,
    )


def _came_late(call: CallRecord) -> bool:
    return call.outcome == "abandoned" and not math.isnan(call.ended_at_s)


def _error(error_type: str) -> dict[str, Value]:
    return {ERROR_TYPE: error_type} if error_type else {}


def _attributes(record: RunRecord | CallRecord, names: Mapping[str, str]) -> dict[str, Value]:
    """Return columns as attributes with these names; leaves out what did not happen or is not known."""
    values = {name: getattr(record, column) for column, name in names.items()}
    return {name: value for name, value in values.items() if value != "" and value == value}  # NaN is not itself
