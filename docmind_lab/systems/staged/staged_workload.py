"""The workload `staged`: turns chunks of text into a graph, by an agent and the ladder below it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.retries import retries_within_own_limits
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind
from docmind_lab.systems.base.workloads import ClientWorkload
from docmind_lab.systems.staged.chunks import StagedChunk, found_in, recall_and_f1, staged_chunks
from docmind_lab.systems.staged.graph_store import GraphStore
from docmind_lab.systems.staged.staged_events import EVENTS, STAGES, STAGES_TABLE
from docmind_lab.systems.staged.staged_graph import Compiled, build_staged_graph
from docmind_lab.systems.staged.staged_state import STORE_KEY, StagedOptions

# The agent's replies are cut there, as servers do: a reply that is longer ends in the middle of a call.
MAX_REPLY_TOKENS = 320
_MOST_STEPS = 100


@dataclass
class StagedWorkload(ClientWorkload):
    """The ladder on one model, built once and run many times; each run has its own store in memory.

    The store is the run's and not the caller's: work that goes on after the caller has left still writes to it.
    options: of the ladder.
    """

    options: StagedOptions = field(default_factory=StagedOptions)

    name = "staged"

    def _build(self) -> None:
        super()._build()
        self._stores: dict[str, GraphStore] = {}

    def _graph(self, mode: NodeMode) -> Compiled:
        model = self._model(mode, max_completion_tokens=MAX_REPLY_TOKENS)
        timeout_s = self.surroundings.settings.llm.request_timeout_seconds
        return build_staged_graph(model, self.options, request_timeout_s=timeout_s, checkpointer=self.saver)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the run's recorder, with a thread and a store of its own."""
        store = self._stores[recorder.run_id] = GraphStore()
        return self._configured(recorder, _MOST_STEPS, **{STORE_KEY: store})

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a chunk."""
        named: Mapping[str, str] = (
            {"source": question.source, "chunk": question.chunk} if isinstance(question, StagedChunk) else {}
        )
        return {**super().inputs(question), "source": "text", "chunk": "1", **named}

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return recall and F1 of the confirmed writes that the caller received; see `KIND`."""
        gold = question.gold if isinstance(question, StagedChunk) else ()
        return recall_and_f1(gold, found_in(outcome.documents))

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints and store; orphaned work that still writes keeps the store until it ends."""
        super().forget(run_id)
        self._stores.pop(run_id, None)


KIND = WorkloadKind(
    adapts=True,
    name="staged",
    title="Staged orchestrator",
    asked="chunks",
    cases=staged_chunks,
    build=StagedWorkload,
    defaults={
        "virtual": Defaults(decision_timeout_s=8.0, runs=48, profile="typical"),
        "wall": Defaults(decision_timeout_s=2.0, runs=12, profile="typical/4"),
    },
    roles=("primary", "tools", *STAGES[1:]),
    events=EVENTS,
    tables=(STAGES_TABLE,),
    reads_settings=True,
    # The agent's timeout is a deadline of its model calls, whatever enforces that of the run.
    retries=retries_within_own_limits,
)
"""Chunks of text into a graph.

documents_count: confirmed writes that the caller received, evidence included. source_recall: share of the gold
entities and relations among them; an entity counts that was written itself or was given an observation, a relation if
its two ends were joined in this direction, whatever the predicate. answer_score: F1, the harmonic mean of that with the
share of written entities and relations that are gold. Both are 0 for a caller who was told of nothing, whatever was
written behind its back.
"""
