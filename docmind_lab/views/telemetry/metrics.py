"""Counts runs and their calls on an OpenTelemetry meter, or into a file in Prometheus' text format."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from docmind_lab.core.telemetry_names import RUN_LABELS, RunInstruments
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.records import CallRecord, EventRecord, RunRecord

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider


class RunCounts:
    """Counts runs, with calls as the client saw them.

    provider: meter provider that the runs are counted on; none when left out. path: file for the counts of this object
    in Prometheus' text format; none when left out.
    """

    def __init__(self, provider: MeterProvider | None, path: str | os.PathLike[str] | None) -> None:
        self._sinks = [] if provider is None else [RunInstruments(provider)]
        self._file = None if path is None else _MetricsFile(path)
        if self._file is not None:
            self._sinks.append(RunInstruments(self._file.provider))

    def add(self, runs: Iterable[MeasuredRun]) -> None:
        """Count runs, and write the file."""
        for measured in runs:
            for instruments in self._sinks:
                _count_run(instruments, measured.run)
                for call in measured.calls:
                    if call.seen_from == "client":
                        _count_call(instruments, call, _labels(measured.run))
                if measured.run.workload == "staged":
                    _count_stages(instruments, measured.run, measured.events)
        if self._file is not None:
            self._file.write()


class _MetricsFile:
    """A meter provider of its own, and the file that it is written to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Function-level: an optional extra.
        from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from prometheus_client import CollectorRegistry  # noqa: PLC0415

        self._path, self._registry = os.fspath(path), CollectorRegistry()
        # One target and one scope: labels that name them would stand on every line.
        reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=self._registry)
        self.provider = MeterProvider([reader], shutdown_on_exit=False)

    def write(self) -> None:
        from prometheus_client import write_to_textfile  # noqa: PLC0415 - an optional extra

        write_to_textfile(self._path, self._registry)


def _labels(run: RunRecord) -> dict[str, str]:
    """`clock` keeps seconds of virtual time apart from real ones."""
    return dict(zip(RUN_LABELS, (run.workload, run.alternative, run.clock), strict=True))


def _count_run(instruments: RunInstruments, run: RunRecord) -> None:
    labels = _labels(run)
    instruments.runs.add(1, {**labels, "outcome": run.outcome, "stop_reason": run.stop_reason})
    until_horizon_s = run.horizon_s - run.decision_timeout_s
    late_s = until_horizon_s if math.isnan(run.caller_overrun_s) else run.caller_overrun_s
    instruments.caller_overrun.record(late_s, labels)
    instruments.work_overrun.record(run.work_overrun_s, labels)
    overspent = {"tokens": run.tokens_overspent, "calls": run.calls_overspent, "cost": run.cost_overspent}
    for budget, by in overspent.items():
        if by > 0:
            instruments.overspent.add(1, {**labels, "budget": budget})


def _count_call(instruments: RunInstruments, call: CallRecord, of_run: Mapping[str, str]) -> None:
    labels = {**of_run, "role": call.role, "kind": call.kind}
    instruments.calls.add(1, {**labels, "outcome": call.outcome})
    if call.outcome != "refused" and not math.isnan(call.latency_s):
        instruments.call_duration.record(call.latency_s, labels)
    for direction, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
        if not math.isnan(tokens):
            instruments.tokens.add(tokens, {**labels, "direction": direction})


def _count_stages(instruments: RunInstruments, run: RunRecord, events: Iterable[EventRecord]) -> None:
    """Count the rungs of a ladder by their events."""
    labels, rows = _labels(run), list(events)
    # First of all: events of one instant stand in the order of their names.
    began_at_s = {event.role: event.at_s for event in rows if event.event == "stage_started"}
    for event in rows:
        if event.event == "stage_ended":
            outcome = json.loads(event.detail)["outcome"]
            took_s = event.at_s - began_at_s[event.role]
            instruments.stage_duration.record(took_s, {**labels, "stage": event.role, "outcome": outcome})
        elif event.event == "fallback":
            to_stage = json.loads(event.detail)["to_stage"]
            instruments.fallbacks.add(1, {**labels, "from_stage": event.role, "to_stage": to_stage})
        elif event.event == "relation_retried":
            outcome = "confirmed" if json.loads(event.detail)["confirmed"] else "unconfirmed"
            instruments.relation_retries.add(1, {**labels, "outcome": outcome})
