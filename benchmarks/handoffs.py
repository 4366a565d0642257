"""What a handoff costs, in CPU: our supervisor graph over the `langgraph-supervisor` package's, doing the same ones.

The same five agents under both, and a model that answers at once: it hands over to one agent after the other, each
says one sentence, and the last sentence is the answer. Both leave breadcrumbs of handing over, none of coming back,
and take an agent's last message. What a model's client costs is left out: it would make the two alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph_supervisor import create_supervisor
from pydantic import Field

from benchmarks.figures import Figure, sampled
from benchmarks.pairs import Work, pair_ratios
from docmind_lab.core.levels import ROLES
from docmind_lab.systems.docmind.graphs import SupervisorBuildParams, build_multi_agent_supervisor_graph
from docmind_lab.systems.docmind.graphs.handoff import HANDOFF_PREFIX

TARGET = 1.0
REPEATS = 50
_PROMPT = "You hand over to one agent after the other, and then give the answer of the last one."
_AGENTS = tuple(f"{role}_agent" for role in ROLES)

Graph = CompiledStateGraph[Any, Any, Any, Any]


class InstantModel(BaseChatModel):
    """Says at once what the conversation calls for; `calls` is who was asked, in order."""

    offered: list[str] = Field(default_factory=list)
    calls: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """The model with these tools on offer."""
        # The schemas are made as a real model makes them; the list of calls is shared by the copies.
        offered = [convert_to_openai_tool(tool)["function"]["name"] for tool in tools]
        return self.model_copy(update={"offered": offered}).bind(**kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        if not self.offered:
            self.calls.append("agent")
            return AIMessage(f"The conversation had {sum(m.type == 'human' for m in messages)} question.")
        self.calls.append("supervisor")
        said = [m for m in messages if isinstance(m, AIMessage) and m.name in _AGENTS and m.text]
        if len(said) == len(_AGENTS):
            return AIMessage(said[-1].text)
        tool = HANDOFF_PREFIX + _AGENTS[len(said)]
        assert tool in self.offered, f"{tool} is not on offer"
        return AIMessage("", tool_calls=[ToolCall(name=tool, args={}, id=f"call-{len(said)}")])


def run(repeats: int = REPEATS) -> Iterator[Figure]:
    """The ratio, without a checkpointer and with LangGraph's own."""
    model = InstantModel()
    for what, checkpoints in (("without checkpoints", False), ("checkpoints in memory", True)):
        ours, theirs = _ours(model, checkpoints), _theirs(model, checkpoints)
        ratios = pair_ratios([(_handing_over(ours, model), _handing_over(theirs, model))], repeats)
        yield sampled(f"our handoffs / the package's, {what}", ratios, at_most=TARGET)


def _handing_over(graph: Graph, model: InstantModel) -> Work:
    def work() -> tuple[Any, ...]:
        model.calls.clear()
        state = graph.invoke(
            {"messages": [HumanMessage("What does a with statement do?", id="question")]},
            {"configurable": {"thread_id": "handoffs"}},
        )
        if isinstance(graph.checkpointer, InMemorySaver):
            graph.checkpointer.delete_thread("handoffs")
        messages = state["messages"]
        handed_over = [c["name"] for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
        said = [m.name for m in messages if isinstance(m, AIMessage) and m.text]
        return messages[-1].text, handed_over, said, len(messages), list(model.calls)

    return work


def _agents(model: InstantModel) -> list[Graph]:
    return [create_agent(model, tools=[], name=name, system_prompt="You say one sentence.") for name in _AGENTS]


def _ours(model: InstantModel, checkpoints: bool) -> Graph:
    graph = build_multi_agent_supervisor_graph(
        _agents(model), model=model, prompt=_PROMPT, params=SupervisorBuildParams(max_visits=1)
    )
    return graph.compile(checkpointer=InMemorySaver() if checkpoints else None)


def _theirs(model: InstantModel, checkpoints: bool) -> Graph:
    with warnings.catch_warnings():
        # The package builds on LangGraph's older agent, which says of itself that it is deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        graph = create_supervisor(_agents(model), model=model, prompt=_PROMPT, add_handoff_back_messages=False)
    return graph.compile(checkpointer=InMemorySaver() if checkpoints else None)
