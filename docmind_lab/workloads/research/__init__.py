"""Saturation-driven research under layered limits: the workload `research`, and functions that run a research.

tasks.py           tasks of a few hypotheses, with gold; ResearchLimits: one call, one source, the whole research
sources.py         collections that differ in pages, richness, noise and pace; their results
prompts.py         what the model is told and given in its four roles
searching.py       a search as a recorded call under the deadline
model_calls.py     a model call, tried again within the budget, and the decision in its reply
exits.py           why a source ended, the event that says so, and the table `sources`
ledger.py          what was asked and kept, in memory and in a folder
loop.py            one source: write, search, filter, record, check
graph.py           hypotheses in turn, sources side by side, the findings
report.py          how each source ended, what is partial, what was kept
system.py          clients, sources, model, graph
running.py         research(task, system), SimulatedResearch
counterfactual.py  what lay past the stop
workload.py        all of it under a deadline that somebody else enforces
"""

from docmind_lab.workloads.research.counterfactual import past_the_stop
from docmind_lab.workloads.research.exits import EXIT_REASONS
from docmind_lab.workloads.research.report import ResearchReport
from docmind_lab.workloads.research.running import SimulatedResearch, research, research_async
from docmind_lab.workloads.research.sources import SourceSpec, load_sources
from docmind_lab.workloads.research.system import ResearchSystem
from docmind_lab.workloads.research.tasks import Hypothesis, ResearchLimits, ResearchTask, load_tasks
from docmind_lab.workloads.research.workload import KIND, ResearchWorkload

__all__ = [
    "EXIT_REASONS",
    "KIND",
    "Hypothesis",
    "ResearchLimits",
    "ResearchReport",
    "ResearchSystem",
    "ResearchTask",
    "ResearchWorkload",
    "SimulatedResearch",
    "SourceSpec",
    "load_sources",
    "load_tasks",
    "past_the_stop",
    "research",
    "research_async",
]
