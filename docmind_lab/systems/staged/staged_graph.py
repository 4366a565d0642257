"""The ladder as a compiled graph, which processes one chunk in each run.

graph = build_staged_graph(ChatOpenAI(...))
inputs = {"messages": [HumanMessage("A checkpoint is …")], "source": "handbook", "chunk": "12"}
state = graph.invoke(inputs, {"configurable": {"graph_store": GraphStore("graph.db")}})
state["outcome"], len(state["documents"])            # ("agent", 7)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.staged.primary import Primary
from docmind_lab.systems.staged.rungs import finalize, forced, generated, suggested
from docmind_lab.systems.staged.staged_state import StagedOptions, StagedState, is_blank, text_of

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
