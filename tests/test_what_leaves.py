"""What a run sends goes to hosts that the settings allow, and addresses are shown without what is secret in them."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import httpx2
import pytest
from chat_replies import answering, reply
from hypothesis import given
from hypothesis import strategies as st
from langsmith.utils import get_env_var, tracing_is_enabled
from sample_runs import sample_run
from stub_server import StubServer
from urllib3.util import parse_url

from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.addresses import host_of, redact_url, without_credentials
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, EndpointRefused, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.network.live_endpoints import endpoint_checks
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.tables.manifest import manifest_of
from docmind_lab.views.machine_checks import diagnose
from docmind_lab.views.telemetry import Telemetry
from docmind_lab.views.telemetry.run_spans import otlp_exporter, send_spans

PASSWORD, TOKEN = "swordfish", "opensesame"


# ---- traces of LangSmith


def test_a_run_is_not_traced_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    get_env_var.cache_clear()
    try:
        assert tracing_is_enabled(), "or the run says nothing"
        with recording(Recorder("run", 1, Deadline.after(1.0))):
            assert not tracing_is_enabled()
    finally:
        monkeypatch.undo()
        get_env_var.cache_clear()


@pytest.mark.full
@pytest.mark.wall
def test_no_request_of_a_query_or_a_comparison_goes_to_langsmith() -> None:
    made = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "support" / "traced_runs.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    counts = json.loads(made.stdout)
    assert (counts["outcome"], counts["query"], counts["run"]) == ("answered", [], [])
    assert counts["outside"], "the sink must be reachable, or the others say nothing"


# ---- spans


def test_spans_pass_no_proxy_of_the_environment_and_a_redirect_is_not_sent(
    stub: Callable[..., StubServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    elsewhere = stub(answering(reply(b"")))
    collector = stub(answering(reply(b"", 307, f"location: {elsewhere.url}\r\n")))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    exporter = otlp_exporter()
    manifest = {"created_utc": "2026-11-22T09:00:00+00:00"}
    run = MeasuredRun(sample_run("cooperative", 1), (), (), Outcome("answered"), math.nan)
    with pytest.raises(ServiceError, match="took 0 of"):
        send_spans([run], manifest, exporter)
    exporter.shutdown()
    assert collector.requests
    assert not elsewhere.requests


@pytest.mark.parametrize("url", ["http://[::1]evil.test/", "http://evil.test\\@127.0.0.1/", "http://127.0.0.1:99999"])
def test_an_address_that_clients_would_read_differently_is_refused_as_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EndpointRefused, match=r"write it like http://127\.0\.0\.1:8000/v1"):
        Settings(llm={"base_url": url})
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    with pytest.raises(EndpointRefused, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        Telemetry(spans="otlp").check(Settings())


PIECES = r"127.0.0.1 evil.test [::1] localhost :80 :99999 : @ \ / ? # %2e user ."
PARTS = st.sampled_from((" ", *re.findall(r"\S+", PIECES)))


@given(st.lists(PARTS, max_size=7).map("".join))
def test_every_client_sends_to_the_host_that_was_admitted(rest: str) -> None:
    url = f"http://{rest}"
    try:
        host = host_of(url)
    except ValueError:
        return
    assert httpx.URL(url).host.lower() == httpx2.URL(url).host.lower() == host
    assert str(parse_url(url).host).strip("[]") == host
    assert host_of(redact_url(url)) == host


# ---- credentials


@pytest.fixture
def secret_settings(stub: Callable[..., StubServer]) -> Settings:
    body = json.dumps({"data": [{"id": "docmind-scripted"}], "version": "1.0"}).encode()
    at = f"http://user:{PASSWORD}@127.0.0.1:{stub(answering(reply(body))).port}"
    return Settings(llm={"base_url": f"{at}/v1?token={TOKEN}"}, database={"qdrant_url": f"{at}?token={TOKEN}"})


def test_credentials_are_in_no_finding_of_doctor_and_in_no_log_line(
    secret_settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docmind_lab.views.machine_checks._simulated_services", lambda: ())
    monkeypatch.setattr("docmind_lab.views.machine_checks._timers", lambda: ())
    monkeypatch.setenv("DOCMIND_LLM__BASE_URL", str(secret_settings.llm.base_url))
    with caplog.at_level(logging.DEBUG):
        findings = [repr(check) for check in diagnose(secret_settings)]
    assert any("has docmind-scripted" in finding for finding in findings), "the endpoint must have been asked"
    assert "HTTP Request: GET http://127.0.0.1" in caplog.text
    for text in (*findings, caplog.text):
        assert PASSWORD not in text
        assert TOKEN not in text


def test_credentials_are_in_no_repr_record_manifest_or_error(
    stub: Callable[..., StubServer], secret_settings: Settings
) -> None:
    at = f"http://user:{PASSWORD}@127.0.0.1:{stub(answering(reply(b'', 503))).port}/v1?token={TOKEN}"
    failing = Settings(llm={"base_url": at}, database={"qdrant_url": at})
    texts = [
        repr(secret_settings),
        secret_settings._repr_html_(),
        json.dumps(secret_settings.recorded()),
        json.dumps(manifest_of({}, secret_settings, study_id="x", complete=True)),
        repr(ServiceAddresses(at, at, at)),
        *(repr(check) for check in endpoint_checks(failing)),
    ]
    for broken in (f"http://user:{PASSWORD}@evil.test:99999/?token={TOKEN}", f"http://user:{PASSWORD}@"):
        with pytest.raises(ConfigurationError) as refused:
            Settings(llm={"base_url": broken})
        texts.append(str(refused.value))
    for text in texts:
        assert PASSWORD not in text
        assert TOKEN not in text
    recorded = secret_settings.recorded()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", recorded["llm"]["base_url"])
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/?", recorded["database"]["qdrant_url"])
    assert "api_key" not in recorded["llm"]


def test_an_address_in_a_text_is_shown_without_credentials() -> None:
    text = f"no answer from http://user:{PASSWORD}@h.test/v1?token={TOKEN}, try again"
    assert PASSWORD not in without_credentials(text)
    assert "http://h.test/v1" in without_credentials(text)
