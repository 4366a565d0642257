"""The checks of `docmind-lab doctor` on this machine: versions, settings, endpoints, timers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

from docmind_lab.core.addresses import redact_url
from docmind_lab.core.errors import DocmindLabError
from docmind_lab.core.settings import Settings, variable_names
from docmind_lab.network.live_endpoints import Check, endpoint_checks
from docmind_lab.services.server import ServiceProcess
from docmind_lab.tables.manifest import PACKAGES

SUPPORTED = ((3, 11), (3, 13))
_EXTRAS = {"llamaindex": "llama-index-core", "notebooks": "jupyterlab"}
_NAPS, _NAP_S = 40, 0.005
# Overruns below this are not the alternative's but the machine's.
_NOISY_S = 0.02


def diagnose(settings: Settings) -> Iterator[Check]:
    """Yield the result of each check; takes a few seconds. Endpoints are asked only for models and version."""
    yield _python()
    yield from _packages()
    yield from _settings(settings)
    yield from endpoint_checks(settings)
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
        if path == "llm.api_key" and variable in os.environ:
            value = "(set)"
        text = redact_url(value) if isinstance(value, str) and "://" in value else value
        yield Check(variable, "ok", f"{text} ({source})")


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
