"""The ladder as a compiled graph: one node for each rung, and one for what is done after any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.docmind.graphs.model_calls import ModelCalls
from docmind_lab.docmind.graphs.model_client import Asking
from docmind_lab.workloads.staged.events import Telling
from docmind_lab.workloads.staged.metrics import LadderMetrics
from docmind_lab.workloads.staged.stages import Primary, finalize, forced, generated, suggested
from docmind_lab.workloads.staged.state import Ladder, StagedOptions, StagedState, is_blank, text_of

Compiled = CompiledStateGraph[Any, Any, Any, Any]


def build_staged_graph(
    model: BaseChatModel,
    options: StagedOptions | None = None,
    *,
    metrics: LadderMetrics | None = None,
    request_timeout_s: float | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> Compiled:
    """The compiled graph of a ladder over a chat model with tools.

    Its input has `messages` with the text of a chunk as a HumanMessage, `source` and `chunk`; its configuration has
    the store (`graph_store`). request_timeout_s: cap of one model call, besides the agent's timeout. metrics: none
    unless given.

    The agent's timeout cuts models whose requests go through `docmind_lab.network`, in both colours; the async side
    cuts any other too. A sync model of another kind is given the timeout as `timeout=` and trusted with it.
    """
    ladder = Ladder(options or StagedOptions(), Telling(metrics))
    primary = Primary(ladder, Asking(model, ModelCalls("primary", request_timeout_s=request_timeout_s)))
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(StagedState)
    # Where each goes on is in the commands that it returns; named here for those who draw the graph.
    graph.add_node("primary", primary.ask(), destinations=("tools", "suggested", "finalize"))
    graph.add_node("tools", primary.tools(), destinations=("primary",))
    graph.add_node("suggested", suggested(ladder), destinations=("generated", "finalize"))
    graph.add_node("generated", generated(ladder), destinations=("forced", "finalize"))
    graph.add_node("forced", forced(ladder), destinations=("finalize",))
    graph.add_node("finalize", finalize(ladder))
    graph.add_conditional_edges(START, _first, ["primary", "finalize"])
    graph.add_edge("finalize", END)
    return graph.compile(checkpointer=checkpointer)


def _first(state: Mapping[str, Any]) -> str:
    """Where a chunk begins: a blank one has nothing for any rung."""
    return "finalize" if is_blank(text_of(state)) else "primary"
