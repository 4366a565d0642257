"""The workload `research`: a research task under a deadline that is enforced from outside.

A run's decision timeout is a deadline from outside. Alternatives that propagate it make it a second research budget,
at which calls are cut; the others stop the graph their own way. `ResearchLimits` are the research's own and hold under
all of them, `unguarded` included.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from docmind_lab.alternatives.base import Runnable
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.bounded_calls import RETRIEVAL
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.observer import RunCallbacks
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.retries import retries_of_own_loop
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind, with_policies_but
from docmind_lab.systems.base.workloads import GraphWorkload
from docmind_lab.systems.research import prompts
from docmind_lab.systems.research.exits import COMPLETE, SOURCES
from docmind_lab.systems.research.research_system import ResearchSystem
from docmind_lab.systems.research.tasks import ResearchLimits, as_task, load_tasks

LIMITS: Mapping[str, int] = MappingProxyType({"manual": 5, "archive": 4, "forum": 3})
"""Queries that a measured run may put to each source: more where a source is rich, fewer where it is noisy."""


@dataclass
class ResearchWorkload(GraphWorkload):
    """The research system as a workload.

    The client retries of its surroundings are attempts of a model call after the first, in place of
    `limits.llm_retries`; the client itself makes none, since it would not know of the research budget. Results of a run
    are flushed to a temporary folder of its own, gone when the run is forgotten.
    """

    limits: ResearchLimits = field(default_factory=lambda: ResearchLimits(max_queries_per_source=LIMITS))

    name = "research"

    def _build(self) -> None:
        around = self.surroundings
        if around.client_retries is not None:
            self.limits = replace(self.limits, llm_retries=around.client_retries)
        self.system = ResearchSystem(
            around.addresses,
            around.settings,
            self.limits,
            around.resolve_corpus(),
            max_connections=around.max_connections,
        )
        self.folder = Path(tempfile.mkdtemp(prefix="docmind-research-"))
        # For a process that ends without closing what it has built, as the workers of a batch do.
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def _graph(self, mode: NodeMode) -> Runnable:
        return self.system.graph(self.saver, mode)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph with a ledger of its own, observed by the run's recorder."""
        ledger = self.system.ledger(self.results(recorder.run_id))
        configured = self.system.configure(self.graph, ledger, recorder.run_id)
        return configured.with_config({"callbacks": [RunCallbacks(recorder)]})

    def results(self, run_id: str) -> Path:
        """Return the folder that holds a run's results while it lasts."""
        return self.folder / run_id.replace("/", "_")

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a task; any other question becomes a task of one hypothesis."""
        return {**super().inputs(question), "task": as_task(question)}

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints and results."""
        super().forget(run_id)
        shutil.rmtree(self.results(run_id), ignore_errors=True)

    def close(self) -> None:
        """Close the clients and delete the remaining results."""
        self.system.close()
        shutil.rmtree(self.folder, ignore_errors=True)


KIND = WorkloadKind(
    name="research",
    title="Saturation-driven research",
    asked="tasks",
    cases=load_tasks,
    build=ResearchWorkload,
    # The budget falls among the run times of the tasks, which have two or three hypotheses.
    defaults={"virtual": Defaults(35.0, 8, "typical"), "wall": Defaults(3.5, 4, "typical/10")},
    roles=(prompts.WRITER, RETRIEVAL, prompts.FILTER, prompts.JUDGE, prompts.SYNTHESIS),
    events={
        "source_started": "Work on a source began. detail: hypothesis, source.",
        "query_recorded": (
            "A query to a source was over and what it brought was flushed. "
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
