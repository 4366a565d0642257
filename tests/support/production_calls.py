"""Calls in production and files of their spans, by OpenTelemetry's own SDK and encoding."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sample_runs import sample_run, study_of

from docmind_lab.alternatives.enforcement.call_telemetry import CallTelemetry
from docmind_lab.alternatives.enforcement.result import Result
from docmind_lab.findings.study import Study


class Production:
    """A service whose calls are recorded: `telemetry` is for `enforce(on_result=...)`."""

    def __init__(self, workflow: str = "support") -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = CallTelemetry(workflow, tracer_provider=self.provider)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def write(self, path: Path, batch: int = 50) -> Path:
        """Write the spans as the collector's file exporter does: one document for each batch, one a line."""
        batches = [self.spans[start : start + batch] for start in range(0, len(self.spans), batch)]
        path.write_text("".join(f"{line_of(spans)}\n" for spans in batches), encoding="utf-8")
        return path


def line_of(spans: Sequence[ReadableSpan]) -> str:
    return json.dumps(MessageToDict(encode_spans(spans)))


def result_of(is_answered: bool, late_s: float = 0.0, **changes: Any) -> Result[Any]:
    """The result of a call of E with 20 s that answered in time, or that the deadline cut."""
    values: dict[str, Any] = {
        "outcome": "answered" if is_answered else "timed_out",
        "state": {},
        "stop_reason": "" if is_answered else "deadline",
        "overrun_s": 0.0 if is_answered else late_s,
        "requests_cut": 0 if is_answered else 1,
        "elapsed_s": 1.0,
        "limit_s": 20.0,
        "remaining_at_start_s": 20.0,
        "alternative": "hybrid",
    }
    return Result(**{**values, **changes})


def run_of(repeat: int, is_answered: bool, late_s: float = 0.0, **changes: Any) -> Any:
    """A run of E with 20 s that ended as `result_of`."""
    ended = {} if is_answered else {"outcome": "timed_out", "answered_in_time": False, "stop_reason": "deadline"}
    late = {"caller_overrun_s": 0.0 if is_answered else late_s}
    limit = {"decision_timeout_s": 20.0, "horizon_s": 100.0}
    return sample_run("hybrid", repeat, **{**limit, **ended, **late, **changes})


def study_with(answered: Iterable[bool], late_s: float = 0.01, **changes: Any) -> Study:
    return study_of([run_of(repeat, is_answered, late_s, **changes) for repeat, is_answered in enumerate(answered)])


def shares(answered: int, runs: int) -> list[bool]:
    """So many that answered among so many."""
    return [place < answered for place in range(runs)]


def drawn(rng: np.random.Generator, share: float, count: int) -> list[bool]:
    return [bool(value) for value in rng.random(count) < share]
