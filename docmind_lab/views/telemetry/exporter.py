"""Sends spans of runs after the last run, so that no run is measured with it.

What fails or hangs is left behind with a warning in the log; the runs and their tables are what they are without it.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.views.telemetry.run_spans import otlp_exporter, send_spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

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
