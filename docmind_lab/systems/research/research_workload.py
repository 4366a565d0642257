"""The workload `research`: a research task under a deadline that is enforced from outside.

A run's decision timeout is a deadline from outside. Alternatives that propagate it make it a second research budget,
at which calls are cut; the others stop the graph their own way. `ResearchLimits` are the research's own and hold under
all of them, `unguarded` included.

Everything slow is done when the workload is made, before any clock of a run starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from docmind_lab.alternatives.base import Runnable
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.bounded_calls import RETRIEVAL
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.retries import retries_of_own_loop
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind, with_policies_but
from docmind_lab.systems.base.workloads import ClientWorkload, ServiceSystem, configured
from docmind_lab.systems.research import prompts
from docmind_lab.systems.research.exits import COMPLETE, SOURCES
from docmind_lab.systems.research.loop import SourceLoop
from docmind_lab.systems.research.research_graph import ResearchGraph, config_of
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.sources import SourceSearch, build_sources, load_sources
from docmind_lab.systems.research.tasks import ResearchLimits, as_task, load_tasks

LIMITS: Mapping[str, int] = MappingProxyType({"manual": 5, "archive": 4, "forum": 3})
"""Queries that a measured run may put to each source: more where a source is rich, fewer where it is noisy."""

_ROLES = (prompts.WRITER, prompts.FILTER, prompts.JUDGE, prompts.SYNTHESIS)


@dataclass
class ResearchWorkload(ServiceSystem, ClientWorkload):
    """The research system as a workload: its sources hold parts of the corpus.

    The client retries of its surroundings are attempts of a model call after the first, in place of
    `limits.llm_retries`; the client itself makes none, since it would not know of the research budget.

    Raises: ConfigurationError for limits that name no source; ServiceError for a vector store that cannot be reached.
    """

    limits: ResearchLimits = field(default_factory=lambda: ResearchLimits(max_queries_per_source=LIMITS))

    name = "research"

    def _build(self) -> None:
        retries = self.surroundings.client_retries
        if retries is not None:
            self.limits = replace(self.limits, llm_retries=retries)
        specs = load_sources()
        self.limits.check_sources(spec.name for spec in specs)
        chunks = self.surroundings.resolve_corpus().chunks
        self._connect()
        with self._built():
            self.sources = build_sources(self.qdrant, specs, chunks)

    def _graph(self, mode: NodeMode) -> Runnable:
        timeout_s = self.limits.llm_timeout_seconds
        # The loop tries again by itself, and never past its budget, which a client knows nothing of.
        model = self._model(mode, timeout=timeout_s, max_retries=0)
        calls = {role: ModelCalls(role, request_timeout_s=timeout_s) for role in _ROLES}
        loop = SourceLoop(
            model_clients={role: ModelClient(model, calls[role]) for role in _ROLES},
            search_source=SourceSearch(self.qdrant, self.qdrant_async, mode),
        )
        return ResearchGraph(loop, self.sources).compile(self.saver)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph with a ledger of its own, observed by the run's recorder."""
        ledger = ResearchLedger(self.limits)
        return configured(self.graph.with_config(config_of(ledger)), recorder, recorder.run_id)

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a task; any other question becomes a task of one hypothesis."""
        return {**super().inputs(question), "task": as_task(question)}


KIND = WorkloadKind(
    name="research",
    title="Saturation-driven research",
    asked="tasks",
    cases=load_tasks,
    build=ResearchWorkload,
    # The budget falls among the run times of the tasks, which have two or three hypotheses.
    defaults={"virtual": Defaults(35.0, 8, "typical"), "wall": Defaults(3.5, 4, "typical/10")},
    roles=(prompts.WRITER, RETRIEVAL, *_ROLES[1:]),
    events={
        "source_started": "Work on a source began. detail: hypothesis, source.",
        "query_recorded": (
            "A query to a source was over and what it brought was kept. "
            "detail: hypothesis, source, found, accepted, unfiltered, new, error."
        ),
        "malformed_decision": "A model's decision had no usable shape; it is asked once more.",
        COMPLETE: (
            "Work on a source ended; once for each that began. detail: hypothesis, source, exit_reason, "
            "queries_executed, queries_failed, results_found, results_accepted, results_unfiltered, "
            "saturation_decision, started_at_s, ended_at_s (since the research began)."
        ),
    },
    tables=(SOURCES,),
    takes_questions=True,
    refusal=with_policies_but(),
    retries=retries_of_own_loop(ResearchLimits().llm_retries),
    reads_settings=True,
)
"""Research of tasks at several sources until they are saturated.

documents_count: results kept, each once. source_recall: share of the task's gold topics among the pages that kept
results come from; it is read off what was kept when the caller returned, findings or not. answer_score: share of the
task's gold facts that the findings state with a citation that bears them out; 0 for a run that came to no findings.
"""
