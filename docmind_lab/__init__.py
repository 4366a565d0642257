"""docmind_lab measures how a multi-agent system should enforce its deadline, and how long the deadline should be.

    import docmind_lab as dl
    study = dl.compare(decision_timeout_s=20, runs=40, seed=7)

Eleven packages, from the bottom up; each imports only from those above it in this list:

core            errors, settings, deadlines, budgets, clocks, files, data
tables          what was seen: runs, calls and events, and traces of other people's runs
virtual_time    a clock on which waits take no time
statistics      intervals, tests, and latency profiles
network         the seam under every HTTP client: observes attempts, holds them to the deadline
services        the simulated model server and vector store, as plans played over sockets
alternatives    ways to enforce a deadline, measured and in production
systems         what is put under a deadline: DocMind, four others, and a user's own graph, agent or program
findings        what tables show: studies, choices, recommendations, what-if, diff, watch
experiments     runs that are measured: one, a comparison, designed studies, load, recordings
views           figures, the command line, notebook panels, reports, telemetry

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
    from docmind_lab.experiments.lint.run import doctor
    from docmind_lab.experiments.nouns import (
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
    from docmind_lab.experiments.sweeps.design import StudyDesign
    from docmind_lab.experiments.sweeps.recommend import recommend
    from docmind_lab.experiments.sweeps.runner import sweep
    from docmind_lab.experiments.world import Live, Replay, ScriptedModel, World
    from docmind_lab.findings import agreement
    from docmind_lab.findings.study import Study
    from docmind_lab.findings.what_if.what_if import what_if
    from docmind_lab.network.deadline_headers import DeadlineOnWire, deadline_headers
    from docmind_lab.statistics.latency.profile import LatencyProfile
    from docmind_lab.systems.docmind.coordinator import AgentResponse, MultiAgentCoordinator
    from docmind_lab.tables.traces.model import Traces
    from docmind_lab.views import plots
    from docmind_lab.views.panels import tune

__version__ = "0.1.0"

_HOMES = {
    "AgentResponse": "docmind_lab.systems.docmind.coordinator",
    "Budget": "docmind_lab.core.budgets",
    "CallCut": "docmind_lab.alternatives.enforcement",
    "Deadline": "docmind_lab.core.deadlines",
    "DeadlineOnWire": "docmind_lab.network.deadline_headers",
    "EnforcedAgent": "docmind_lab.alternatives.enforcement",
    "LatencyProfile": "docmind_lab.statistics.latency.profile",
    "Live": "docmind_lab.experiments.world",
    "MultiAgentCoordinator": "docmind_lab.systems.docmind.coordinator",
    "Price": "docmind_lab.core.budgets",
    "Replay": "docmind_lab.experiments.world",
    "Result": "docmind_lab.alternatives.enforcement",
    "ScriptedModel": "docmind_lab.experiments.world",
    "Settings": "docmind_lab.core.settings",
    "Study": "docmind_lab.findings.study",
    "StudyDesign": "docmind_lab.experiments.sweeps.design",
    "System": "docmind_lab.experiments.nouns",
    "Traces": "docmind_lab.tables.traces.model",
    "World": "docmind_lab.experiments.world",
    "agent": "docmind_lab.experiments.nouns",
    "command": "docmind_lab.experiments.nouns",
    "compare": "docmind_lab.experiments.comparison",
    "crash_test": "docmind_lab.experiments.crash_test",
    "deadline": "docmind_lab.alternatives.enforcement",
    "deadline_headers": "docmind_lab.network.deadline_headers",
    "disconnected": "docmind_lab.alternatives.enforcement",
    "docmind": "docmind_lab.experiments.nouns",
    "doctor": "docmind_lab.experiments.lint.run",
    "enforce": "docmind_lab.alternatives.enforcement",
    "exclude": "docmind_lab.alternatives.enforcement",
    "graph": "docmind_lab.experiments.nouns",
    "hops": "docmind_lab.experiments.nouns",
    "install": "docmind_lab.alternatives.enforcement",
    "peers": "docmind_lab.experiments.nouns",
    "recommend": "docmind_lab.experiments.sweeps.recommend",
    "remaining_s": "docmind_lab.alternatives.enforcement",
    "research": "docmind_lab.experiments.nouns",
    "staged": "docmind_lab.experiments.nouns",
    "sweep": "docmind_lab.experiments.sweeps.runner",
    "transport": "docmind_lab.alternatives.enforcement",
    "tune": "docmind_lab.views.panels",
    "uninstall": "docmind_lab.alternatives.enforcement",
    "what_if": "docmind_lab.findings.what_if.what_if",
    "workload": "docmind_lab.experiments.nouns",
}

_MODULES = {
    "agreement": "docmind_lab.findings.agreement",
    "errors": "docmind_lab.core.errors",
    "findings": "docmind_lab.findings",
    "lint": "docmind_lab.experiments.lint",
    "plots": "docmind_lab.views.plots",
}

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
