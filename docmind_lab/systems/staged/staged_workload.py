"""The workload `staged`: turns chunks of text into a graph, by an agent and the ladder below it, one chunk in each run.

graph = build_staged_graph(ChatOpenAI(...))
inputs = {"messages": [HumanMessage("A checkpoint is …")], "source": "handbook", "chunk": "12"}
state = graph.invoke(inputs, {"configurable": {"graph_store": GraphStore("graph.db")}})
state["outcome"], len(state["documents"])            # ("agent", 7)

The chunks are passages of the handbook, with the entities and relations that they contain. The list was written by
reading the passages, before anything that extracts was run on them, and was not tuned since.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.core.data import data_in
from docmind_lab.core.levels import NAN
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.documents import handbook
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.retries import retries_within_own_limits
from docmind_lab.systems.base.steps_node import StepsNode, add_steps
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind
from docmind_lab.systems.base.workloads import ClientWorkload, configured
from docmind_lab.systems.staged.graph_store import GraphStore
from docmind_lab.systems.staged.primary import Primary
from docmind_lab.systems.staged.rungs import Rungs
from docmind_lab.systems.staged.stage_calls import gold_entity, gold_relation
from docmind_lab.systems.staged.staged_events import EVENTS, STAGES, STAGES_TABLE, digest
from docmind_lab.systems.staged.staged_state import STORE_KEY, StagedOptions, StagedState, is_blank, text_of


@dataclass(frozen=True)
class StagedChunk(Question):
    """A passage to process. gold: all that counts as found; gold_topics has it as digests, as events name it."""

    source: str = "text"
    chunk: str = "1"
    gold: tuple[str, ...] = ()


@functools.cache
def staged_chunks(corpus: str = "handbook") -> tuple[StagedChunk, ...]:
    """Load the passages in file order: the handbook's, whatever the corpus."""
    passages = {chunk.id: chunk for chunk in handbook().chunks}
    chunks = []
    for entry in data_in("staged_chunks.json"):
        passage = passages[entry["chunk"]]
        source, _, part = entry["chunk"].partition("#")
        relations = (gold_relation(each["subject"], each["object"]) for each in entry["relations"])
        gold = (*map(gold_entity, entry["entities"]), *relations)
        chunks.append(
            StagedChunk(
                id=entry["chunk"],
                text=f"{passage.section}\n\n{passage.text}",
                gold_topics=tuple(digest(counted) for counted in gold),
                source=source.removesuffix(".md"),
                chunk=part,
                gold=gold,
            )
        )
    return tuple(chunks)


def found_in(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the gold entries that a run's documents, its confirmed writes, satisfy; each once."""
    labels = (label for document in documents for label in document["metadata"].get("counts_as", ()))
    return tuple(dict.fromkeys(labels))


def recall_and_f1(gold: Iterable[str], counted: Iterable[str]) -> tuple[float, float]:
    """Return the recall of the gold, and F1, its harmonic mean with the precision; NaN without gold."""
    labels, had = set(gold), set(counted)
    if not labels:
        return NAN, NAN
    hits = len(labels & had)
    if not hits:
        return 0.0, 0.0
    recall, precision = hits / len(labels), hits / len(had)
    return recall, 2 * recall * precision / (recall + precision)


Compiled = CompiledStateGraph[Any, Any, Any, Any]


def build_staged_graph(
    model: BaseChatModel,
    options: StagedOptions | None = None,
    *,
    request_timeout_s: float | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> Compiled:
    """Compile the graph of a ladder over a chat model with tools.

    Its input has `messages` with the text of a chunk as a HumanMessage, `source` and `chunk`; its configuration has
    the store (`graph_store`). A `deadline_ts` in the input caps the agent's timeout at what is left of it, less the
    ladder's reserve. request_timeout_s: cap of one model call, besides the agent's timeout. A run raises LadderFailed
    when nothing could be written; its record is the dead letter.

    The agent's timeout cuts models whose requests go through `docmind_lab.network`, sync and async; the async side
    cuts any other too. A sync model of another kind is given the timeout as `timeout=` and trusted with it.
    """
    options = options or StagedOptions()
    primary = Primary(options, ModelClient(model, ModelCalls("primary", request_timeout_s=request_timeout_s)))
    rungs, graph = Rungs(options), StateGraph[Any, Any, Any, Any](StagedState)
    # Where each goes on is in the commands that it returns; named here for those who draw the graph.
    for name, step, destinations in (
        ("primary", primary.ask, ("tools", "suggested", "finalize")),
        ("tools", primary.tools, ("primary",)),
        ("suggested", rungs.suggested, ("generated", "finalize")),
        ("generated", rungs.generated, ("forced", "finalize")),
        ("forced", rungs.forced, ("finalize",)),
    ):
        graph.add_node(name, StepsNode(name, step), destinations=destinations)
    add_steps(graph, finalize=rungs.finalize)
    graph.add_conditional_edges(START, _first, ["primary", "finalize"])
    graph.add_edge("finalize", END)
    return graph.compile(checkpointer=checkpointer)


def _first(state: Mapping[str, Any]) -> str:
    """Return the first node for a chunk; a blank one goes straight to the end."""
    return "finalize" if is_blank(text_of(state)) else "primary"


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
        self._stores: dict[str, GraphStore] = {}

    def _graph(self, mode: NodeMode) -> Compiled:
        model = self._model(mode, max_completion_tokens=MAX_REPLY_TOKENS)
        timeout_s = self.surroundings.settings.llm.request_timeout_seconds
        return build_staged_graph(model, self.options, request_timeout_s=timeout_s, checkpointer=self.saver)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the run's recorder, with a thread and a store of its own."""
        store = self._stores[recorder.run_id] = GraphStore()
        return configured(self.graph, recorder, recorder.run_id, named={STORE_KEY: store}, recursion_limit=_MOST_STEPS)

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
