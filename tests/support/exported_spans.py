"""Spans as other tools export them: LangSmith's by its own schema, OTLP JSON as the Collector writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from langsmith.schemas import Run

BEGAN = pd.Timestamp("2026-11-23T09:30:00Z")
SECRET = "a secret question"


def after(seconds: float) -> str:
    """An instant, so many seconds after the first."""
    return (BEGAN + pd.Timedelta(seconds=seconds)).isoformat()


def langsmith_run(
    number: int, parent: int | None, kind: str, name: str, begun_s: float, ended_s: float, trace: int = 1, **more: Any
) -> dict[str, Any]:
    """A run of LangSmith as JSON; numbers become ids."""
    ident = "00000000-0000-0000-0000-{:012}"
    values = {
        "id": ident.format(number),
        "trace_id": ident.format(trace),
        "parent_run_id": None if parent is None else ident.format(parent),
        "run_type": kind,
        "name": name,
        "start_time": after(begun_s),
        "end_time": after(ended_s),
        "inputs": {"question": SECRET},
        "dotted_order": "1",
        "session_id": ident.format(99),
        "extra": {"metadata": {"thread_id": "chat-7"}},
    }
    result: dict[str, Any] = json.loads(Run.model_validate(values | more).model_dump_json())
    return result


def otlp_span(
    name: str, begun_s: float, ended_s: float, attributes: Mapping[str, str | int | float], **more: Any
) -> dict[str, Any]:
    """A span of OTLP JSON; its start is its id."""
    return {
        "traceId": "t",
        "spanId": str(begun_s),
        "name": name,
        "startTimeUnixNano": str(int(begun_s * 1e9)),
        "endTimeUnixNano": str(int(ended_s * 1e9)),
        "attributes": [{"key": key, "value": _any_value(value)} for key, value in attributes.items()],
        **more,
    }


def _any_value(value: str | int | float) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue" if isinstance(value, str) else "doubleValue": value}


def otlp(spans: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A document of OTLP JSON with these spans."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}
