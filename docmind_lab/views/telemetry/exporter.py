"""Sends spans of runs after the last run, so that no run is measured with it.

What fails or hangs is left behind with a warning in the log; the runs and their tables are what they are without it.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.levels import NAN
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.derive import (
    Answer,
    RunFacts,
    call_records,
    derive_run,
    event_records,
    horizon_of,
)
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.manifest import manifest_of
from docmind_lab.views.telemetry.run_spans import otlp_exporter, send_spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from docmind_lab.systems.docmind.coordinator.delivery import EndedQuery

_log = logging.getLogger("docmind_lab.telemetry")
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@dataclass(frozen=True)
class Telemetry:
    """Sends spans of runs; to nowhere by default.

    Args:
        spans: "otlp" for where OTEL_EXPORTER_OTLP_* variables say, or an exporter of OpenTelemetry's SDK, which its
            owner shuts down.
        patience_s: Seconds that an exporter is waited for; one that hangs is left behind in a daemon thread.

    Raises:
        ConfigurationError: A value cannot be used.
    """

    spans: SpanExporter | str | None = None
    patience_s: float = 10.0

    def __post_init__(self) -> None:
        require_seconds("telemetry.patience_s", self.patience_s)
        if isinstance(self.spans, str) and self.spans != "otlp":
            raise ConfigurationError(f"telemetry.spans must be 'otlp' or an exporter, not {self.spans!r}")

    def check(self, settings: Settings) -> None:
        """Check that spans can be sent; called before a study begins.

        Args:
            settings: Settings that say which addresses may be reached.

        Raises:
            ConfigurationError: Something is not installed.
            EndpointRefused: The settings do not admit the address.
        """
        if self.spans is not None:
            _require("OpenTelemetry", "opentelemetry.sdk.trace")
        if self.spans == "otlp":
            _require("the OTLP exporter", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
            # The first that is set is the one that is used.
            if name := next(filter(os.environ.get, _ENDPOINTS), ""):
                settings.admit(os.environ[name], name=name)

    def tell(self, measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Send the spans of runs; never raises if sending fails.

        Args:
            measured: The runs.
            manifest: Manifest of their study.
        """
        if self.spans is None:
            return
        runs = sorted(measured, key=lambda item: item.run.run_id)
        thread = threading.Thread(target=self._send, args=(runs, manifest), name="docmind-telemetry", daemon=True)
        thread.start()
        thread.join(self.patience_s)
        if thread.is_alive():
            _log.warning("spans: not sent within %g s; left behind", self.patience_s)

    def query_sink(self, settings: Settings, corpus: str) -> Callable[[EndedQuery], None]:
        """Return a function that sends one query after the other, for `MultiAgentCoordinator(telemetry=...)`.

        The coordinator calls it in a thread of its own when a query is quiet, so the caller waits for nothing. An
        exporter that hangs keeps that thread, and later queries are not sent.

        Args:
            settings: Settings of the coordinator.
            corpus: Name of what is searched.
        """
        study_id = f"queries-{uuid.uuid4().hex[:10]}"

        def sink(query: EndedQuery) -> None:
            if self.spans is not None:
                manifest = manifest_of({"corpus": corpus}, settings, study_id=study_id, complete=True)
                self._send([measured_query(query, settings, study_id)], manifest)

        return sink

    def _send(self, runs: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Send the spans of runs; what goes wrong is a warning in the log."""
        try:
            if not isinstance(self.spans, str) and self.spans is not None:
                send_spans(runs, manifest, self.spans)
                return
            exporter = otlp_exporter()
            try:
                send_spans(runs, manifest, exporter)
            finally:
                exporter.shutdown()
        except DocmindLabError as error:
            _log.warning("spans: not sent (%s)", error)
        except Exception as error:  # noqa: BLE001 - whatever an exporter does, the runs are what they are
            # Its type only: a message that is not ours may hold an address with a user in it.
            _log.warning("spans: not sent (%s)", type(error).__name__)


def _require(what: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        remedy = "pip install 'docmind_lab[telemetry]', or leave spans off"
        raise ConfigurationError(f"{what} is not installed: {remedy}") from error


def measured_query(query: EndedQuery, settings: Settings, study_id: str) -> MeasuredRun:
    """Wait until a query is quiescent and return it as a measured run; what only servers know is NaN.

    It is over when nothing of it is at work any more, at its horizon at the latest. A coordinator that closes ends what
    is at work: the query is then as it stood, and its work counts as not over.
    """
    recorder, alternative, outcome = query.recorder, query.alternative, query.outcome
    limit_s = recorder.deadline.limit_s
    horizon_s = horizon_of(limit_s)
    horizon_at = recorder.started_at + horizon_s
    quiet = recorder.wait_quiet(max(0.0, horizon_at - recorder.clock.now()))
    snapshot = recorder.snapshot()
    returned_at = recorder.started_at if recorder.returned_at is None else recorder.returned_at
    # Whoever had no answer yet when it closed was waited for, and is told of whole.
    if returned_at <= query.closing.at < min(horizon_at, snapshot.last_at):
        horizon_at, horizon_s = query.closing.at, query.closing.at - recorder.started_at
    if not quiet or snapshot.last_at > horizon_at:
        quiet, snapshot = False, snapshot.until(horizon_at)
    facts = RunFacts.of(
        alternative,
        limit_s,
        horizon_s=horizon_s,
        study_id=study_id,
        run_id=recorder.run_id,
        workload="supervisor",
        seed=recorder.seed,
        question_id="",
        router_injection=settings.agents.enable_router_injection,
        retries="",
        latency_profile="",
        fault="",
        clock="wall",
        has_server_log=False,
        # Others may be answered at the same time.
        alone=False,
    )
    answer = Answer(outcome.outcome, outcome.stop_reason, len(outcome.documents), NAN, NAN)
    calls, events = call_records(facts, recorder, snapshot, []), event_records(facts, recorder, snapshot, [])
    run = derive_run(facts, answer, calls, events, work_censored=not quiet, threads_left=snapshot.threads_left)
    return MeasuredRun(run, tuple(calls), tuple(events), outcome, recorder.started_at)
