"""What `docmind-lab doctor` looks at: versions, settings, endpoints, and how late this machine's timers are."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from docmind_lab.errors import DocmindLabError
from docmind_lab.manifest import PACKAGES
from docmind_lab.network import HttpxTransport
from docmind_lab.services.server import ServiceProcess
from docmind_lab.settings import Settings, variable_names

Verdict = Literal["ok", "failed", "note"]

SUPPORTED = ((3, 11), (3, 13))
_EXTRAS = {"llamaindex": "llama-index-core", "notebooks": "jupyterlab"}
# An endpoint that needs longer for a list of names will not answer questions within seconds either.
_PATIENCE_S = 5.0
_NAPS, _NAP_S = 40, 0.005
# Overruns below this are not the alternative's but the machine's.
_NOISY_S = 0.02


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. remedy: what to do when it failed."""

    subject: str
    verdict: Verdict
    finding: str
    remedy: str = ""


def diagnose(settings: Settings) -> Iterator[Check]:
    """Checks as they are made; takes a few seconds. Endpoints are asked for their models and version only."""
    yield _python()
    yield from _packages()
    yield from _settings(settings)
    yield from _endpoints(settings)
    yield _simulated_services()
    yield _timers()


def _python() -> Check:
    version = platform.python_version()
    if SUPPORTED[0] <= sys.version_info[:2] <= SUPPORTED[1]:
        return Check("python", "ok", version)
    return Check("python", "failed", version, "use Python 3.11, 3.12 or 3.13: make setup PYTHON=python3.12")


def _packages() -> Iterator[Check]:
    for name in PACKAGES:
        try:
            yield Check(name, "ok", importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, "failed", "not installed", f"install it: pip install {name}, or make setup")
    for extra, name in _EXTRAS.items():
        try:
            yield Check(name, "ok", f"{importlib.metadata.version(name)} (extra {extra})")
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, "note", f"not installed; only needed with the extra {extra}")


def _settings(settings: Settings) -> Iterator[Check]:
    values = settings.model_dump(mode="json")
    for variable, path in variable_names().items():
        value: Any = values
        for part in path.split("."):
            value = value[part]
        source = "environment" if variable in os.environ else "default"
        shown = "(set)" if path == "llm.api_key" and variable in os.environ else value
        yield Check(variable, "ok", f"{shown} ({source})")


def _endpoints(settings: Settings) -> Iterator[Check]:
    if settings.llm.base_url is None:
        yield Check("model endpoint", "ok", "simulated")
    else:
        headers = {"Authorization": f"Bearer {settings.llm.api_key.get_secret_value()}"}
        yield _model_endpoint(settings, f"{settings.llm.base_url.rstrip('/')}/models", headers)
    if settings.database.qdrant_path:
        yield Check("vector store", "note", f"local store {settings.database.qdrant_path}: it knows no timeouts")
    elif settings.database.qdrant_url is None:
        yield Check("vector store", "ok", "simulated")
    else:
        yield _vector_store(settings, settings.database.qdrant_url)


def _asked(settings: Settings, url: str, headers: dict[str, str] | None = None) -> Any:
    with httpx.Client(
        transport=HttpxTransport(admit=settings.admit), trust_env=False, timeout=_PATIENCE_S, follow_redirects=True
    ) as client:
        response = client.get(url, headers=headers)
        response.raise_for_status()
        return response.json()


def _model_endpoint(settings: Settings, url: str, headers: dict[str, str]) -> Check:
    subject, where = "model endpoint", settings.llm.base_url
    remedy = "start the server, or set DOCMIND_LLM__BASE_URL to where it is"
    try:
        names = [str(entry["id"]) for entry in _asked(settings, url, headers)["data"]]
    except (httpx.HTTPError, DocmindLabError) as error:
        return Check(subject, "failed", f"{where}: {_reason(error)}", remedy)
    except (ValueError, KeyError, TypeError):
        return Check(subject, "failed", f"{where}: its list of models cannot be read", remedy)
    if settings.llm.model not in names:
        known = ", ".join(names[:5]) or "none"
        return Check(
            subject, "failed", f"{where} has no model {settings.llm.model!r}; it has {known}", "set DOCMIND_LLM__MODEL"
        )
    return Check(subject, "ok", f"{where} has {settings.llm.model}")


def _vector_store(settings: Settings, url: str) -> Check:
    remedy = "start Qdrant, or set DOCMIND_DATABASE__QDRANT_URL to where it is"
    try:
        version = _asked(settings, url)["version"]
    except (httpx.HTTPError, DocmindLabError) as error:
        return Check("vector store", "failed", f"{url}: {_reason(error)}", remedy)
    except (ValueError, KeyError, TypeError):
        return Check("vector store", "failed", f"{url} does not answer like Qdrant", remedy)
    return Check("vector store", "ok", f"{url}, version {version}")


def _reason(error: BaseException) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return str(error) or type(error).__name__


def _simulated_services() -> Check:
    began = time.monotonic()
    try:
        with ServiceProcess():
            took_s = time.monotonic() - began
    except DocmindLabError as error:
        return Check("simulated services", "failed", str(error), "run docmind-lab serve to see why")
    return Check("simulated services", "ok", f"start in {took_s:.1f} s")


def _timers() -> Check:
    late_s = []
    for _ in range(_NAPS):
        due_at = time.monotonic() + _NAP_S
        time.sleep(_NAP_S)
        late_s.append(time.monotonic() - due_at)
    median_ms, worst_s = statistics.median(late_s) * 1000, max(late_s)
    finding = f"{median_ms:.2f} ms late at the median, {worst_s * 1000:.1f} ms at worst of {_NAPS}"
    if worst_s > _NOISY_S:
        return Check("timers", "note", f"{finding}: this machine is busy; overruns below that are noise")
    return Check("timers", "ok", finding)
