"""The ladder as a compiled graph, and functions that process one chunk with it, sync and async.

graph = build_staged_graph(ChatOpenAI(...))
result = process_chunk("A checkpoint is …", graph, GraphStore("graph.db"), source="handbook", chunk="12")
result.outcome, result.confirmed            # ("agent", 7)
await aprocess_chunk(...)                   # the same on an event loop
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.staged.graph_store import GraphWriter
from docmind_lab.systems.staged.primary import Primary
from docmind_lab.systems.staged.rungs import finalize, forced, generated, suggested
from docmind_lab.systems.staged.staged_ledger import StageLedger
from docmind_lab.systems.staged.staged_state import STORE_KEY, StagedOptions, StagedState, is_blank, text_of

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
    the store (`graph_store`). request_timeout_s: cap of one model call, besides the agent's timeout.

    The agent's timeout cuts models whose requests go through `docmind_lab.network`, sync and async; the async side
    cuts any other too. A sync model of another kind is given the timeout as `timeout=` and trusted with it.
    """
    options = options or StagedOptions()
    primary = Primary(options, ModelClient(model, ModelCalls("primary", request_timeout_s=request_timeout_s)))
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(StagedState)
    # Where each goes on is in the commands that it returns; named here for those who draw the graph.
    graph.add_node("primary", primary.ask(), destinations=("tools", "suggested", "finalize"))
    graph.add_node("tools", primary.tools(), destinations=("primary",))
    graph.add_node("suggested", suggested(options), destinations=("generated", "finalize"))
    graph.add_node("generated", generated(options), destinations=("forced", "finalize"))
    graph.add_node("forced", forced(options), destinations=("finalize",))
    graph.add_node("finalize", finalize(options))
    graph.add_conditional_edges(START, _first, ["primary", "finalize"])
    graph.add_edge("finalize", END)
    return graph.compile(checkpointer=checkpointer)


def _first(state: Mapping[str, Any]) -> str:
    """Return the first node for a chunk; a blank one goes straight to the end."""
    return "finalize" if is_blank(text_of(state)) else "primary"


@dataclass(frozen=True)
class ChunkResult:
    """The result of processing a chunk.

    outcome: the rung that wrote first (agent, suggested, generated, forced), or skipped_empty. confirmed, unconfirmed:
    writes. skipped: calls that asked for nothing that can be done. dropped: calls beyond what is run at once.
    repaired: calls that were mended. warnings: what did not work in the end, and did no harm to the rest.
    writes: key → kind, origin and names of each confirmed write.
    """

    outcome: str
    confirmed: int
    unconfirmed: int
    skipped: int
    dropped: int
    repaired: int
    warnings: tuple[str, ...]
    writes: Mapping[str, Mapping[str, Any]]


def process_chunk(
    text: str, graph: Compiled, store: GraphWriter, *, source: str, chunk: str, deadline: Deadline | None = None
) -> ChunkResult:
    """Process the chunk through the whole ladder. It blocks, and may be called while an event loop runs.

    deadline: the agent's timeout is at most what is left of it, less the ladder's reserve.
    Raises: LadderFailed when nothing could be written; its record is the dead letter.
    """
    return _result(graph.invoke(_inputs(text, source, chunk, deadline), _config(store)))


async def aprocess_chunk(
    text: str, graph: Compiled, store: GraphWriter, *, source: str, chunk: str, deadline: Deadline | None = None
) -> ChunkResult:
    """`process_chunk`, as a coroutine; cancelled, it leaves what was written until then."""
    return _result(await graph.ainvoke(_inputs(text, source, chunk, deadline), _config(store)))


def _inputs(text: str, source: str, chunk: str, deadline: Deadline | None) -> dict[str, Any]:
    extra = {} if deadline is None else {DEADLINE_KEY: deadline.at_s}
    return {"messages": [HumanMessage(text, id="chunk")], "source": source, "chunk": chunk, **extra}


def _config(store: GraphWriter) -> RunnableConfig:
    return {"configurable": {STORE_KEY: store}, "recursion_limit": 100}


def _result(state: Mapping[str, Any]) -> ChunkResult:
    ledger = StageLedger.of(state)
    return ChunkResult(
        outcome=state["outcome"],
        **ledger.counts(),
        repaired=ledger.repaired,
        warnings=tuple(ledger.warnings),
        writes=ledger.confirmed,
    )
