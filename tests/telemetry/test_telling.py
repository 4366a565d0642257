"""Telling of runs is off by default and best-effort: what fails or hangs changes no run and no result."""

from __future__ import annotations

import importlib
import re
import sys
import threading
import time
from typing import Any

import pytest

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, EndpointRefused
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.views.telemetry import Telemetry

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from span_exporters import Failing, Hanging


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def compared(telemetry: Telemetry | None) -> dl.Study:
    return dl.compare(
        decision_timeout_s=8.0, alternatives="A", world=dl.World(latencies="typical"), runs=1, telemetry=telemetry
    )


def test_an_exporter_that_fails_changes_no_result_and_its_message_is_not_repeated(
    told: list[MeasuredRun], manifest: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    Telemetry(spans=Failing()).tell(told, manifest)
    assert "spans: not sent (RuntimeError)" in caplog.text
    assert "secret" not in caplog.text


def test_an_exporter_that_takes_nothing_is_said_to_have_taken_nothing(
    told: list[MeasuredRun], manifest: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    exporter = InMemorySpanExporter()
    exporter.shutdown()
    Telemetry(spans=exporter).tell(told, manifest)
    assert "spans: not sent (the exporter took 0 of " in caplog.text


@pytest.mark.wall
def test_an_exporter_that_hangs_is_left_behind(
    told: list[MeasuredRun], manifest: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    exporter, begun_at = Hanging(), time.monotonic()
    try:
        Telemetry(spans=exporter, patience_s=0.2).tell(told, manifest)
        took_s = time.monotonic() - begun_at
        assert "spans: not sent within 0.2 s; left behind" in caplog.text
        # It would wait for ever; a loaded machine may take its time with 0.2 s.
        assert 0.2 <= took_s < 5.0
    finally:
        exporter.released.set()


def test_a_study_is_the_same_whether_it_is_told_of_to_nobody_to_a_failing_exporter_or_to_one_that_works() -> None:
    exporter, untold = InMemorySpanExporter(), compared(None)
    for telemetry in (Telemetry(spans=Failing()), Telemetry(spans=exporter)):
        study = compared(telemetry)
        for table in ("runs", "calls", "events"):
            assert getattr(study, table).equals(getattr(untold, table)), table
        assert study.manifest["design"] == untold.manifest["design"]
    assert len(exporter.get_finished_spans()) == 1 + (untold.calls["seen_from"] == "client").sum()


def test_without_being_asked_it_tells_nobody_anything(
    told: list[MeasuredRun], manifest: dict[str, Any], unset: pytest.MonkeyPatch
) -> None:
    unset.setattr(threading.Thread, "start", lambda self: pytest.fail("a thread"))
    Telemetry().check(Settings())
    Telemetry().tell(told, manifest)


def test_without_the_sdk_only_who_asks_for_spans_hears_of_it(unset: pytest.MonkeyPatch) -> None:
    unset.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    Telemetry().check(Settings())
    with pytest.raises(ConfigurationError, match="OpenTelemetry is not installed"):
        Telemetry(spans=InMemorySpanExporter()).check(Settings())


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"spans": "jaeger"}, "telemetry.spans must be 'otlp' or an exporter, not 'jaeger'"),
        ({"patience_s": 0}, "telemetry.patience_s must be a finite number of seconds above 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(named)):
        Telemetry(**values)


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_a_collector_elsewhere_is_refused_before_anything_starts_unless_it_is_allowed(
    unset: pytest.MonkeyPatch, name: str
) -> None:
    telemetry = Telemetry(spans="otlp")
    telemetry.check(Settings())
    unset.setenv(name, "https://collector.example:4318")
    with pytest.raises(EndpointRefused, match=f"{name}: collector.example is not on this machine"):
        compared(telemetry)
    allowed = {"allow_remote_endpoints": True, "endpoint_allowlist": ("collector.example",)}
    telemetry.check(Settings(security=allowed))


def test_without_the_extra_the_remedy_is_named_before_anything_starts(unset: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def missing(name: str, package: str | None = None) -> Any:
        if name.startswith("opentelemetry.exporter"):
            raise ModuleNotFoundError(name)
        return real(name, package)

    unset.setattr(importlib, "import_module", missing)
    with pytest.raises(ConfigurationError, match=re.escape("pip install 'docmind_lab[telemetry]'")):
        Telemetry(spans="otlp").check(Settings())
