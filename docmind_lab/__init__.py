"""docmind_lab measures how a multi-agent system should enforce its deadline, and how long the deadline should be.

    import docmind_lab as dl
    study = dl.compare(decision_timeout_s=20, runs=40, seed=7)

Eleven packages, from the bottom up; each imports only from those above it in this list:

core          errors, settings, deadlines, budgets, clocks, files, data
tables        what was seen: runs, calls and events, and traces of other people's runs
virtual_time  a clock on which waits take no time
statistics    intervals, tests, and latency profiles
network       the seam under every HTTP client: observes attempts, holds them to the deadline
services      the simulated model server and vector store, as plans played over sockets
alternatives  ways to enforce a deadline, measured and in production
systems       what is put under a deadline: DocMind, four others, and a user's own graph, agent or program
findings      what tables show: studies, choices, recommendations, what-if, diff, watch
experiments   runs that are measured: one, a comparison, designed studies, load, recordings
views         figures, the command line, notebook panels, reports, telemetry

The other modules at the top are public names of what lies in one of these: graphs, telemetry, testing.

Names are imported when first used, so `import docmind_lab` costs next to nothing; what runs under a clock imports
everything it needs before the clock starts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmind_lab import findings
    from docmind_lab.alternatives.enforcement import (
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
    from docmind_lab.core import errors
    from docmind_lab.core.budgets import Budget, Price
    from docmind_lab.core.deadlines import Deadline
    from docmind_lab.core.settings import Settings
    from docmind_lab.experiments import lint
    from docmind_lab.experiments.comparison import compare
    from docmind_lab.experiments.crash_test import crash_test
    from docmind_lab.experiments.lint.lint_run import doctor
    from docmind_lab.experiments.sweeps.study_design import StudyDesign
    from docmind_lab.experiments.sweeps.sweep_run import recommend, sweep
    from docmind_lab.experiments.system_options import (
        System,
        agent,
        command,
        docmind,
        graph,
        hops,
        peers,
        research,
        staged,
        workload,
    )
    from docmind_lab.experiments.world_options import Live, Replay, ScriptedModel, World
    from docmind_lab.findings import agreement
    from docmind_lab.findings.study import Study
    from docmind_lab.findings.what_if.what_if import what_if
    from docmind_lab.network.deadline_headers import DeadlineOnWire, deadline_headers
    from docmind_lab.statistics.latency.profile import LatencyProfile
    from docmind_lab.systems.docmind.coordinator import AgentResponse, MultiAgentCoordinator
    from docmind_lab.tables.traces.trace_tables import Traces
    from docmind_lab.views import plots
    from docmind_lab.views.panels import tune

__version__ = "0.1.0"

_HOMES = {
    "alternatives.enforcement": (
        "CallCut",
        "EnforcedAgent",
        "Result",
        "deadline",
        "disconnected",
        "enforce",
        "exclude",
        "install",
        "remaining_s",
        "transport",
        "uninstall",
    ),
    "core.budgets": (
        "Budget",
        "Price",
    ),
    "core.deadlines": ("Deadline",),
    "core.settings": ("Settings",),
    "experiments.comparison": ("compare",),
    "experiments.crash_test": ("crash_test",),
    "experiments.lint.lint_run": ("doctor",),
    "experiments.system_options": (
        "System",
        "agent",
        "command",
        "docmind",
        "graph",
        "hops",
        "peers",
        "research",
        "staged",
        "workload",
    ),
    "experiments.sweeps.study_design": ("StudyDesign",),
    "experiments.sweeps.sweep_run": ("recommend", "sweep"),
    "experiments.world_options": (
        "Live",
        "Replay",
        "ScriptedModel",
        "World",
    ),
    "findings.study": ("Study",),
    "findings.what_if.what_if": ("what_if",),
    "network.deadline_headers": (
        "DeadlineOnWire",
        "deadline_headers",
    ),
    "statistics.latency.profile": ("LatencyProfile",),
    "systems.docmind.coordinator": (
        "AgentResponse",
        "MultiAgentCoordinator",
    ),
    "tables.traces.trace_tables": ("Traces",),
    "views.panels": ("tune",),
}
"""Module → the public names that are in it."""

_MODULES = {
    "agreement": "findings.agreement",
    "errors": "core.errors",
    "findings": "findings",
    "lint": "experiments.lint",
    "plots": "views.plots",
}

_PLACES = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AgentResponse",
    "Budget",
    "CallCut",
    "Deadline",
    "DeadlineOnWire",
    "EnforcedAgent",
    "LatencyProfile",
    "Live",
    "MultiAgentCoordinator",
    "Price",
    "Replay",
    "Result",
    "ScriptedModel",
    "Settings",
    "Study",
    "StudyDesign",
    "System",
    "Traces",
    "World",
    "agent",
    "agreement",
    "command",
    "compare",
    "crash_test",
    "deadline",
    "deadline_headers",
    "disconnected",
    "docmind",
    "doctor",
    "enforce",
    "errors",
    "exclude",
    "findings",
    "graph",
    "hops",
    "install",
    "lint",
    "peers",
    "plots",
    "recommend",
    "remaining_s",
    "research",
    "staged",
    "sweep",
    "transport",
    "tune",
    "uninstall",
    "what_if",
    "workload",
]


def __getattr__(name: str) -> Any:
    try:
        if name in _MODULES:
            return importlib.import_module(f"docmind_lab.{_MODULES[name]}")
        if name in _PLACES:
            value = getattr(importlib.import_module(f"docmind_lab.{_PLACES[name]}"), name)
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
