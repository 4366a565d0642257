"""docmind_lab measures how a multi-agent system should enforce its deadline, and how long the deadline should be.

    import docmind_lab as dl
    study = dl.compare(decision_timeout_s=20, runs=40, seed=7)

Eleven packages, from the bottom up; each imports only from those above it in this list:

core            errors, settings, deadlines, budgets, clocks, files, data
analysis        tables in; statistics, findings, figures and sentences out
virtual_time    a clock on which waits take no time
network         the seam under every HTTP client: observes attempts, holds them to the deadline
services        the simulated model server and vector store, as plans played over sockets
alternatives    ways to enforce a deadline
enforcement     an alternative around a user's graph, clients and services, in production
docmind         the system the lab was made for: documents, retrieval, graphs, coordinator
workloads       systems under a deadline, and a user's own graph
experiments     runs that are measured: one, a comparison, designed studies, load, recordings
interfaces      the command line, notebook panels, reports, telemetry

The other modules at the top are public names of what lies in one of these: graphs, telemetry, testing.

Names are imported when first used, so `import docmind_lab` costs next to nothing; what runs under a clock imports
everything it needs before the clock starts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmind_lab.analysis import agreement, findings, plots
    from docmind_lab.analysis.latency.profile import LatencyProfile
    from docmind_lab.analysis.study import Study
    from docmind_lab.analysis.traces.model import Traces
    from docmind_lab.analysis.traces.what_if import what_if
    from docmind_lab.core import errors
    from docmind_lab.core.budgets import Budget, Price
    from docmind_lab.core.deadlines import Deadline
    from docmind_lab.core.settings import Settings
    from docmind_lab.docmind.coordinator import AgentResponse, MultiAgentCoordinator
    from docmind_lab.enforcement import (
        CallCut,
        EnforcedAgent,
        Result,
        deadline,
        disconnected,
        enforce,
        exclude,
        install,
        remaining_s,
        transport,
        uninstall,
    )
    from docmind_lab.experiments import lint
    from docmind_lab.experiments.comparison import compare
    from docmind_lab.experiments.crash_test import crash_test
    from docmind_lab.experiments.sweeps.design import StudyDesign
    from docmind_lab.experiments.sweeps.runner import sweep
    from docmind_lab.interfaces.panels import tune
    from docmind_lab.network.deadline_headers import DeadlineOnWire, deadline_headers

__version__ = "0.1.0"

_HOMES = {
    "AgentResponse": "docmind_lab.docmind.coordinator",
    "Budget": "docmind_lab.core.budgets",
    "CallCut": "docmind_lab.enforcement",
    "Deadline": "docmind_lab.core.deadlines",
    "DeadlineOnWire": "docmind_lab.network.deadline_headers",
    "EnforcedAgent": "docmind_lab.enforcement",
    "LatencyProfile": "docmind_lab.analysis.latency.profile",
    "MultiAgentCoordinator": "docmind_lab.docmind.coordinator",
    "Price": "docmind_lab.core.budgets",
    "Result": "docmind_lab.enforcement",
    "Settings": "docmind_lab.core.settings",
    "Study": "docmind_lab.analysis.study",
    "StudyDesign": "docmind_lab.experiments.sweeps.design",
    "Traces": "docmind_lab.analysis.traces.model",
    "compare": "docmind_lab.experiments.comparison",
    "crash_test": "docmind_lab.experiments.crash_test",
    "deadline": "docmind_lab.enforcement",
    "deadline_headers": "docmind_lab.network.deadline_headers",
    "disconnected": "docmind_lab.enforcement",
    "enforce": "docmind_lab.enforcement",
    "exclude": "docmind_lab.enforcement",
    "install": "docmind_lab.enforcement",
    "remaining_s": "docmind_lab.enforcement",
    "sweep": "docmind_lab.experiments.sweeps.runner",
    "transport": "docmind_lab.enforcement",
    "tune": "docmind_lab.interfaces.panels",
    "uninstall": "docmind_lab.enforcement",
    "what_if": "docmind_lab.analysis.traces.what_if",
}

_MODULES = {
    "agreement": "docmind_lab.analysis.agreement",
    "errors": "docmind_lab.core.errors",
    "findings": "docmind_lab.analysis.findings",
    "lint": "docmind_lab.experiments.lint",
    "plots": "docmind_lab.analysis.plots",
}

__all__ = [
    "AgentResponse",
    "Budget",
    "CallCut",
    "Deadline",
    "DeadlineOnWire",
    "EnforcedAgent",
    "LatencyProfile",
    "MultiAgentCoordinator",
    "Price",
    "Result",
    "Settings",
    "Study",
    "StudyDesign",
    "Traces",
    "agreement",
    "compare",
    "crash_test",
    "deadline",
    "deadline_headers",
    "disconnected",
    "enforce",
    "errors",
    "exclude",
    "findings",
    "install",
    "lint",
    "plots",
    "remaining_s",
    "sweep",
    "transport",
    "tune",
    "uninstall",
    "what_if",
]


def __getattr__(name: str) -> Any:
    try:
        if name in _MODULES:
            return importlib.import_module(_MODULES[name])
        if name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("docmind_lab"):
            raise
        remedy = "pip install 'docmind_lab[lab]'"
        raise ModuleNotFoundError(f"docmind_lab.{name} needs {error.name}: {remedy}", name=error.name) from error
    raise AttributeError(f"module 'docmind_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
