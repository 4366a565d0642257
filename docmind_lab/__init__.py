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
    from docmind_lab import findings as findings
    from docmind_lab.alternatives.enforcement import CallCut as CallCut
    from docmind_lab.alternatives.enforcement import EnforcedAgent as EnforcedAgent
    from docmind_lab.alternatives.enforcement import Result as Result
    from docmind_lab.alternatives.enforcement import deadline as deadline
    from docmind_lab.alternatives.enforcement import disconnected as disconnected
    from docmind_lab.alternatives.enforcement import enforce as enforce
    from docmind_lab.alternatives.enforcement import exclude as exclude
    from docmind_lab.alternatives.enforcement import install as install
    from docmind_lab.alternatives.enforcement import remaining_s as remaining_s
    from docmind_lab.alternatives.enforcement import transport as transport
    from docmind_lab.alternatives.enforcement import uninstall as uninstall
    from docmind_lab.core import errors as errors
    from docmind_lab.core.budgets import Budget as Budget
    from docmind_lab.core.budgets import Price as Price
    from docmind_lab.core.deadlines import Deadline as Deadline
    from docmind_lab.core.settings import Settings as Settings
    from docmind_lab.experiments import lint as lint
    from docmind_lab.experiments.comparison import compare as compare
    from docmind_lab.experiments.crash_test import crash_test as crash_test
    from docmind_lab.experiments.lint.lint_run import doctor as doctor
    from docmind_lab.experiments.sweeps.study_design import StudyDesign as StudyDesign
    from docmind_lab.experiments.sweeps.sweep_run import recommend as recommend
    from docmind_lab.experiments.sweeps.sweep_run import sweep as sweep
    from docmind_lab.experiments.system_options import System as System
    from docmind_lab.experiments.system_options import agent as agent
    from docmind_lab.experiments.system_options import command as command
    from docmind_lab.experiments.system_options import docmind as docmind
    from docmind_lab.experiments.system_options import graph as graph
    from docmind_lab.experiments.system_options import hops as hops
    from docmind_lab.experiments.system_options import peers as peers
    from docmind_lab.experiments.system_options import research as research
    from docmind_lab.experiments.system_options import staged as staged
    from docmind_lab.experiments.system_options import workload as workload
    from docmind_lab.experiments.world_options import Live as Live
    from docmind_lab.experiments.world_options import Replay as Replay
    from docmind_lab.experiments.world_options import ScriptedModel as ScriptedModel
    from docmind_lab.experiments.world_options import World as World
    from docmind_lab.findings import agreement as agreement
    from docmind_lab.findings.study import Study as Study
    from docmind_lab.findings.what_if.what_if import what_if as what_if
    from docmind_lab.network.deadline_headers import DeadlineOnWire as DeadlineOnWire
    from docmind_lab.network.deadline_headers import deadline_headers as deadline_headers
    from docmind_lab.statistics.latency.profile import LatencyProfile as LatencyProfile
    from docmind_lab.systems.docmind.coordinator import AgentResponse as AgentResponse
    from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator as MultiAgentCoordinator
    from docmind_lab.tables.traces.trace_tables import Traces as Traces
    from docmind_lab.views import plots as plots
    from docmind_lab.views.panels import tune as tune

__version__ = "0.1.0"

_PLACES = {
    "AgentResponse": "systems.docmind.coordinator",
    "Budget": "core.budgets",
    "CallCut": "alternatives.enforcement",
    "Deadline": "core.deadlines",
    "DeadlineOnWire": "network.deadline_headers",
    "EnforcedAgent": "alternatives.enforcement",
    "LatencyProfile": "statistics.latency.profile",
    "Live": "experiments.world_options",
    "MultiAgentCoordinator": "systems.docmind.coordinator",
    "Price": "core.budgets",
    "Replay": "experiments.world_options",
    "Result": "alternatives.enforcement",
    "ScriptedModel": "experiments.world_options",
    "Settings": "core.settings",
    "Study": "findings.study",
    "StudyDesign": "experiments.sweeps.study_design",
    "System": "experiments.system_options",
    "Traces": "tables.traces.trace_tables",
    "World": "experiments.world_options",
    "agent": "experiments.system_options",
    "command": "experiments.system_options",
    "compare": "experiments.comparison",
    "crash_test": "experiments.crash_test",
    "deadline": "alternatives.enforcement",
    "deadline_headers": "network.deadline_headers",
    "disconnected": "alternatives.enforcement",
    "docmind": "experiments.system_options",
    "doctor": "experiments.lint.lint_run",
    "enforce": "alternatives.enforcement",
    "exclude": "alternatives.enforcement",
    "graph": "experiments.system_options",
    "hops": "experiments.system_options",
    "install": "alternatives.enforcement",
    "peers": "experiments.system_options",
    "recommend": "experiments.sweeps.sweep_run",
    "remaining_s": "alternatives.enforcement",
    "research": "experiments.system_options",
    "staged": "experiments.system_options",
    "sweep": "experiments.sweeps.sweep_run",
    "transport": "alternatives.enforcement",
    "tune": "views.panels",
    "uninstall": "alternatives.enforcement",
    "what_if": "findings.what_if.what_if",
    "workload": "experiments.system_options",
}
"""Public name → the module that it is in."""

_MODULES = {
    "agreement": "findings.agreement",
    "errors": "core.errors",
    "findings": "findings",
    "lint": "experiments.lint",
    "plots": "views.plots",
}
"""Public name → the module that it is."""

__all__ = sorted([*_PLACES, *_MODULES])


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
