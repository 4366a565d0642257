"""The checks of `docmind-lab doctor`: this machine (versions, settings, endpoints, timers), or a program."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.settings import Settings, variable_names
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, measure
from docmind_lab.network.live_endpoints import Check, endpoint_checks
from docmind_lab.services.server import ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.kinds import workload_kind
from docmind_lab.systems.own import Inputs
from docmind_lab.systems.own.programs import Program, own_program
from docmind_lab.systems.own.programs.program import TIMEOUT_VARIABLE, TIMEOUT_WORD, service_variables
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


_CLIENT = (
    "have its client read OPENAI_BASE_URL (or ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_HOST), and no fixed "
    "address"
)


def diagnose_program(command: str | Sequence[str], inputs: Inputs, limit_s: float) -> Iterator[Check]:
    """Yield the result of each check of a program: it is found, its variables, its own timeout, one question.

    inputs: its questions, of which the first is asked, on simulated services. limit_s: how long the question may take,
    in seconds; the program is ended then.

    Raises: ConfigurationError if the command cannot be started, or its questions cannot be used.
    """
    program = Program.of(command)
    yield Check("program", "ok", f"{program.command[0]} is {shutil.which(program.command[0])}")
    addresses = [name for name in service_variables("") if not name.endswith(("_KEY", "_MODEL"))]
    yield Check("variables", "ok", f"{', '.join(addresses)} name the simulated services; keys of models are set")
    if program.has_timeout:
        yield Check("own timeout", "ok", f"{TIMEOUT_WORD} in the command stands for it")
    else:
        yield Check(
            "own timeout",
            "note",
            f"under F {TIMEOUT_VARIABLE} states it, in seconds; {TIMEOUT_WORD} in an argument stands for it",
        )
    yield _first_question(command, inputs, limit_s)


def _first_question(command: str | Sequence[str], inputs: Inputs, limit_s: float) -> Check:
    try:
        measured = _asked_once(command, inputs, limit_s)
    except ConfigurationError as error:
        # A program that asked no model; the message says what it did instead.
        return Check("one question", "failed", str(error), _CLIENT)
    run = measured.run
    requests = f"{run.llm_calls} request{'s' * (run.llm_calls != 1)} to a model"
    if run.outcome == "answered":
        return Check("one question", "ok", f"answered in {run.returned_at_s:.1f} s, with {requests}")
    if run.outcome == "failed":
        remedy = "mend the program; its standard error ends with the line above"
        return Check("one question", "failed", f"{requests}, then it failed: {measured.outcome.error}", remedy)
    finding = f"no answer within {limit_s:g} s, with {requests}"
    if not run.llm_calls:
        return Check("one question", "failed", finding, _CLIENT)
    return Check("one question", "failed", finding, "give it longer (--decision-timeout), or look at what it waits for")


def _asked_once(command: str | Sequence[str], inputs: Inputs, limit_s: float) -> MeasuredRun:
    """Return the run of the first question; B ends its program at the limit, by SIGKILL."""
    own = own_program(command, inputs)
    comparison = Comparison(
        decision_timeout_s=limit_s,
        runs=own.questions,
        horizon_factor=1.5,
        alternatives=parse_alternatives("B"),
        profile=LatencyProfile.named("fast"),
        workload=own.workload,
        documents=Documents(own.corpus),
        clock="wall",
    )
    kind, settings = workload_kind(own.workload), Settings()
    with kind.serve(ServiceOptions(comparison.profile, slots_of_run=True)) as services:
        workload, log = kind.build(Surroundings(services.addresses, settings)), services.log_client()
        try:
            order = min(comparison.orders(), key=lambda order: order.question.id)
            return measure(order, workload, log)
        finally:
            workload.close()
            log.close()
