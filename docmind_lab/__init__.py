"""docmind_lab measures how a multi-agent system should enforce its deadline, and how long the deadline should be.

    import docmind_lab as dl
    study = dl.compare(decision_timeout_s=20, runs=40, seed=7)

errors          everything that is raised on purpose
settings        DOCMIND_ environment variables; which endpoints may be reached
deadlines, budgets   a deadline, and how it reaches a call; tokens, calls and cost of a run beside it
network         the seam under every HTTP client: observes attempts, holds them to the deadline
clocks          how time passes: real time, and virtual time
services        the simulated model server and vector store, as plans played over sockets
retrieval       corpus, index, strategies, router engines, questions, the retrieve_documents tool
libraries       a user's documents as an index folder; the handbook
graphs          the supervisor over five roles
alternatives    ways to enforce a deadline
system          DocMind as a whole: clients, index, model, graph
coordinator     one question in, one response out, within its budget
workloads       systems under a deadline
recorder, records, derive, measurement   one run: what is collected, the tables, how their columns follow
simulation, batch   runs in virtual time: one, and many over processes
conditions, statistics, findings   which runs are compared, how sure that is, and what it means
telemetry       spans and metrics of runs, for who asks for them
comparison, manifest, study, summary, plots   many runs: the main job, its tables, words and figures
studies         designed experiments: sweep, resume, load, diff, export
reports         a study as one page
panels          interactive views, in notebooks
agreement       how far two clocks agree
run_timeline    one run as lines of text
endpoints, diagnosis   is everything there
cli             docmind-lab

Names are imported when first used, so `import docmind_lab` costs next to nothing; what runs under a clock imports
everything it needs before the clock starts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmind_lab import plots
    from docmind_lab.budgets import Budget, Price
    from docmind_lab.comparison import compare
    from docmind_lab.coordinator import AgentResponse, MultiAgentCoordinator
    from docmind_lab.deadlines import Deadline
    from docmind_lab.panels import browse, tune
    from docmind_lab.services.latency import LatencyProfile
    from docmind_lab.settings import Settings
    from docmind_lab.studies.design import StudyDesign
    from docmind_lab.studies.runner import sweep
    from docmind_lab.study import Study

__version__ = "0.1.0"

_HOMES = {
    "AgentResponse": "docmind_lab.coordinator",
    "Budget": "docmind_lab.budgets",
    "Deadline": "docmind_lab.deadlines",
    "LatencyProfile": "docmind_lab.services.latency",
    "MultiAgentCoordinator": "docmind_lab.coordinator",
    "Price": "docmind_lab.budgets",
    "Settings": "docmind_lab.settings",
    "Study": "docmind_lab.study",
    "StudyDesign": "docmind_lab.studies.design",
    "browse": "docmind_lab.panels",
    "compare": "docmind_lab.comparison",
    "sweep": "docmind_lab.studies.runner",
    "tune": "docmind_lab.panels",
}

__all__ = [
    "AgentResponse",
    "Budget",
    "Deadline",
    "LatencyProfile",
    "MultiAgentCoordinator",
    "Price",
    "Settings",
    "Study",
    "StudyDesign",
    "browse",
    "compare",
    "plots",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "plots":
        return importlib.import_module("docmind_lab.plots")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'docmind_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
