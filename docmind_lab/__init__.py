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
experiments   runs that are measured: one, a comparison, designed studies, recordings
views         figures, the command line, notebook panels, reports, telemetry

The other modules at the top are public names of what lies in one of these: graphs, telemetry, testing.

Names are imported when first used, so `import docmind_lab` costs next to nothing; what runs under a clock imports
everything it needs before the clock starts.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmind_lab import findings as findings
    from docmind_lab.alternatives.enforcement import CallCut as CallCut
    from docmind_lab.alternatives.enforcement import EnforcedAgent as EnforcedAgent
    from docmind_lab.alternatives.enforcement import Partial as Partial
    from docmind_lab.alternatives.enforcement import Repair as Repair
    from docmind_lab.alternatives.enforcement import Result as Result
    from docmind_lab.alternatives.enforcement import arepair as arepair
    from docmind_lab.alternatives.enforcement import deadline as deadline
    from docmind_lab.alternatives.enforcement import disconnected as disconnected
    from docmind_lab.alternatives.enforcement import enforce as enforce
    from docmind_lab.alternatives.enforcement import exclude as exclude
    from docmind_lab.alternatives.enforcement import install as install
    from docmind_lab.alternatives.enforcement import once as once
    from docmind_lab.alternatives.enforcement import remaining_s as remaining_s
    from docmind_lab.alternatives.enforcement import repair as repair
    from docmind_lab.alternatives.enforcement import transport as transport
    from docmind_lab.alternatives.enforcement import uninstall as uninstall
    from docmind_lab.alternatives.enforcement.wrap_up_middleware import WrapUpMiddleware as WrapUpMiddleware
    from docmind_lab.core import errors as errors
    from docmind_lab.core.budgets import Budget as Budget
    from docmind_lab.core.budgets import Price as Price
    from docmind_lab.core.deadlines import Deadline as Deadline
    from docmind_lab.core.limits import Limits as Limits
    from docmind_lab.core.settings import Settings as Settings
    from docmind_lab.core.time_policies import WrapUp as WrapUp
    from docmind_lab.experiments.advice import recommend as recommend
    from docmind_lab.experiments.comparison import compare as compare
    from docmind_lab.experiments.crash_test import crash_test as crash_test
    from docmind_lab.experiments.doctor.doctor_run import doctor as doctor
    from docmind_lab.experiments.doctor.timeouts import timeouts as timeouts
    from docmind_lab.experiments.probe.pressure import pressure as pressure
    from docmind_lab.experiments.sweeps.study_design import StudyDesign as StudyDesign
    from docmind_lab.experiments.sweeps.sweep_run import sweep as sweep
    from docmind_lab.experiments.world_options import Live as Live
    from docmind_lab.experiments.world_options import Replay as Replay
    from docmind_lab.experiments.world_options import ScriptedModel as ScriptedModel
    from docmind_lab.experiments.world_options import World as World
    from docmind_lab.findings import agreement as agreement
    from docmind_lab.findings.decision_tables import does_it_stop as does_it_stop
    from docmind_lab.findings.study import Study as Study
    from docmind_lab.findings.study import last_study as last_study
    from docmind_lab.findings.watchdog import watchdog as watchdog
    from docmind_lab.findings.what_if.what_if import what_if as what_if
    from docmind_lab.network.deadline_headers import DeadlineOnWire as DeadlineOnWire
    from docmind_lab.network.deadline_headers import deadline_headers as deadline_headers
    from docmind_lab.statistics.latency.profile import LatencyProfile as LatencyProfile
    from docmind_lab.systems.docmind.coordinator import AgentResponse as AgentResponse
    from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator as MultiAgentCoordinator
    from docmind_lab.systems.system_catalogue import *  # noqa: F403 - the systems are listed there alone
    from docmind_lab.tables.traces.trace_tables import Traces as Traces
    from docmind_lab.views import plots as plots
    from docmind_lab.views.panels import tune as tune

__version__ = "0.3.0"

_PLACES = {
    "AgentResponse": "systems.docmind.coordinator",
    "Budget": "core.budgets",
    "CallCut": "alternatives.enforcement",
    "Deadline": "core.deadlines",
    "Limits": "core.limits",
    "DeadlineOnWire": "network.deadline_headers",
    "EnforcedAgent": "alternatives.enforcement",
    "LatencyProfile": "statistics.latency.profile",
    "Live": "experiments.world_options",
    "MultiAgentCoordinator": "systems.docmind.coordinator",
    "Partial": "alternatives.enforcement",
    "Price": "core.budgets",
    "Repair": "alternatives.enforcement",
    "Replay": "experiments.world_options",
    "Result": "alternatives.enforcement",
    "ScriptedModel": "experiments.world_options",
    "Settings": "core.settings",
    "Study": "findings.study",
    "StudyDesign": "experiments.sweeps.study_design",
    "Traces": "tables.traces.trace_tables",
    "World": "experiments.world_options",
    "WrapUp": "core.time_policies",
    "WrapUpMiddleware": "alternatives.enforcement.wrap_up_middleware",
    "arepair": "alternatives.enforcement",
    "compare": "experiments.comparison",
    "crash_test": "experiments.crash_test",
    "deadline": "alternatives.enforcement",
    "deadline_headers": "network.deadline_headers",
    "disconnected": "alternatives.enforcement",
    "doctor": "experiments.doctor.doctor_run",
    "does_it_stop": "findings.decision_tables",
    "enforce": "alternatives.enforcement",
    "exclude": "alternatives.enforcement",
    "install": "alternatives.enforcement",
    "last_study": "findings.study",
    "once": "alternatives.enforcement",
    "pressure": "experiments.probe.pressure",
    "recommend": "experiments.advice",
    "remaining_s": "alternatives.enforcement",
    "repair": "alternatives.enforcement",
    "sweep": "experiments.sweeps.sweep_run",
    "timeouts": "experiments.doctor.timeouts",
    "transport": "alternatives.enforcement",
    "tune": "views.panels",
    "uninstall": "alternatives.enforcement",
    "watchdog": "findings.watchdog",
    "what_if": "findings.what_if.what_if",
}
"""Public name → the module that it is in."""

_MODULES = {
    "agreement": "findings.agreement",
    "errors": "core.errors",
    "findings": "findings",
    "plots": "views.plots",
}
"""Public name → the module that it is."""


def _systems() -> ModuleType:
    """Return the module of the systems, which lists its public names itself."""
    return importlib.import_module("docmind_lab.systems.system_catalogue")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted([*_PLACES, *_MODULES, *_systems().__all__])
    try:
        if name in _MODULES:
            return importlib.import_module(f"docmind_lab.{_MODULES[name]}")
        if name in _PLACES:
            value = getattr(importlib.import_module(f"docmind_lab.{_PLACES[name]}"), name)
            globals()[name] = value
            return value
    except KeyboardInterrupt:
        from docmind_lab.core.progress import Interrupted  # noqa: PLC0415 - seldom

        raise Interrupted(f"docmind_lab.{name} was being imported") from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("docmind_lab"):
            raise
        extras = "lab,systems" if _PLACES.get(name, "").startswith("systems.docmind") else "lab"
        remedy = f"pip install 'docmind_lab[{extras}]'"
        raise ModuleNotFoundError(f"docmind_lab.{name} needs {error.name}: {remedy}", name=error.name) from error
    if not name.startswith("_") and name in _systems().__all__:
        return getattr(_systems(), name)
    raise AttributeError(f"module 'docmind_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
