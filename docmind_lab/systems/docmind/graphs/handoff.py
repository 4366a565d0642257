"""Tools with which the supervisor hands over to an agent, or forwards an agent's message as the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import END
from langgraph.types import Command, Send
from pydantic import Field

from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import GraphError
from docmind_lab.network.recorder import note_event
from docmind_lab.systems.docmind.graphs.history import keep_only_calls
from docmind_lab.systems.docmind.graphs.supervisor_state import HANDED_DOWN
from docmind_lab.systems.docmind.runtime_tools import runtime_tool

HANDOFF_PREFIX = "transfer_to_"
FORWARD_TOOL = "forward_message"
TASK_PREFIX = "Task: "
_AGENT, _LIMIT = "handoff_to", "handoff_limit"


def normalised_name(agent_name: str) -> str:
    """Return the agent's name as tools have it, such as "doc_reader". Raises: GraphError if nothing is left of it."""
    name = re.sub(r"\W+", "_", agent_name.strip(), flags=re.ASCII).strip("_").lower()
    if not name:
        raise GraphError(f"agent name {agent_name!r} has no letter or digit; give the agent a name like 'router_agent'")
    return name


def create_handoff_tool(
    *,
    agent_name: str,
    name: str | None = None,
    description: str | None = None,
    add_handoff_messages: bool = True,
    max_visits: int = 3,
) -> BaseTool:
    """Return a tool that hands over to `agent_name` in the parent graph.

    The agent gets the conversation so far, and a task of its own if the model gives one. Several handoffs in one
    model message become parallel `Send`s.

    Args:
        agent_name: Node of the agent.
        name: Of the tool; "transfer_to_" and the agent's name when left out.
        description: For the model.
        add_handoff_messages: Leave a breadcrumb in the conversation.
        max_visits: Handing over to the same agent more often is refused with an error that the model can see.
    """
    tool_name = name or HANDOFF_PREFIX + normalised_name(agent_name)

    def hand_over(
        runtime: ToolRuntime[Any, Any],
        task: Annotated[str, Field(description="A part of the question for the agent; empty for all of it.")] = "",
    ) -> Command[Any] | ToolMessage:
        return _hand_over(runtime, tool_name, add_handoff_messages)

    return runtime_tool(
        hand_over,
        name=tool_name,
        description=description or f"Hand over to {agent_name}.",
        metadata={_AGENT: agent_name, _LIMIT: max_visits},
    )


def _hand_over(runtime: ToolRuntime[Any, Any], tool_name: str, add_messages: bool) -> Command[Any] | ToolMessage:
    """Answer one of a message's handoff calls; the first admitted one commands all of them.

    The agent runs each tool call as a task of its own, and of several parent commands LangGraph keeps the first. So
    the first admitted call commands all of them, and the others only answer.
    """
    state: Mapping[str, Any] = runtime.state
    agents = {tool.name: tool.metadata for tool in runtime.tools if tool.metadata and _AGENT in tool.metadata}
    request = _requesting_message(state["messages"], runtime.tool_call_id)
    visits: Mapping[str, int] = state.get("visits", {})
    handoffs = [
        _Handoff(call, str(agents[call["name"]][_AGENT]), visits, agents[call["name"]][_LIMIT])
        for call in request.tool_calls
        if call["name"] in agents
    ]
    admitted = [handoff for handoff in handoffs if handoff.is_admitted]
    own = next(handoff for handoff in handoffs if handoff.call["id"] == runtime.tool_call_id)
    if not own.is_admitted:
        note_event("handoff_refused", "supervisor", agent=own.agent, reason="visits")
    if own is not next(iter(admitted), None):
        return own.answer()
    # The results of other tools in the same message are lost with a parent command; so are their requests.
    breadcrumbs: list[AnyMessage] = [keep_only_calls(request, {handoff.call["id"] for handoff in handoffs})]
    breadcrumbs += [handoff.answer() for handoff in handoffs]
    added = [*_without_request(request, state), *(breadcrumbs if add_messages else ())]
    ordinal = state.get("handoff_ordinal", 0) + 1
    sends = [
        Send(handoff.agent, _agent_input(state, added, handoff.task, ordinal, index))
        for index, handoff in enumerate(admitted)
    ]
    update = {
        "messages": added,
        "handoff_ordinal": ordinal,
        "visits": {handoff.agent: visits.get(handoff.agent, 0) + 1 for handoff in admitted},
    }
    # A tuple: of a list of sends LangGraph's tool node would drop the update.
    return _to_parent(tuple(sends), update)


def _to_parent(goto: Any, update: Mapping[str, Any]) -> Command[Any]:
    """Return a command to the supervisor graph.

    Its update is given as pairs: LangGraph's tool node copies a command whose update is a dict, deeply, with the whole
    conversation and everything that is handed down.
    """
    return Command(graph=Command.PARENT, goto=goto, update=tuple(update.items()))


@dataclass(frozen=True)
class _Handoff:
    """One handoff that a message requests. visits: handoffs to each agent so far; limit: for this agent."""

    call: ToolCall
    agent: str
    visits: Mapping[str, int]
    limit: int

    @property
    def is_admitted(self) -> bool:
        return self.visits.get(self.agent, 0) < self.limit

    @property
    def task(self) -> str:
        return str(self.call["args"].get("task", ""))

    def answer(self) -> ToolMessage:
        """Return the result of the tool call, for the model."""
        name, call_id = self.call["name"], self.call["id"] or ""
        if self.is_admitted:
            return ToolMessage(f"Successfully handed over to {self.agent}.", tool_call_id=call_id, name=name)
        return ToolMessage(
            f"Error: {self.agent} has been handed over to {self.visits[self.agent]} times; finish with what there is.",
            tool_call_id=call_id,
            name=name,
            status="error",
        )


def _without_request(request: AIMessage, state: Mapping[str, Any]) -> list[AnyMessage]:
    """Return the conversation without the request; the supervisor's earlier messages in this turn are kept."""
    return [message for message in state["messages"] if message.id != request.id]


def _agent_input(
    state: Mapping[str, Any], messages: list[AnyMessage], task: str, ordinal: int, index: int
) -> dict[str, Any]:
    """Return the state that an agent starts from: the current one, the conversation, and its place in the run."""
    handed = {key: value for key, value in state.items() if key not in HANDED_DOWN}
    if task:
        messages = [*messages, HumanMessage(TASK_PREFIX + task)]
    handed |= {"messages": messages, "task": task, "handoff_ordinal": ordinal, "fan_out_index": index}
    if DEADLINE_KEY in state:
        handed[DEADLINE_KEY] = state[DEADLINE_KEY]
    return handed


def _requesting_message(messages: Sequence[AnyMessage], tool_call_id: str | None) -> AIMessage:
    for message in reversed(messages):
        if isinstance(message, AIMessage) and any(call["id"] == tool_call_id for call in message.tool_calls):
            return message
    raise GraphError("a supervisor's tool was called outside a supervisor: no message asks for it")


def create_forward_message_tool(supervisor_name: str = "supervisor") -> BaseTool:
    """Return a tool that ends the run with an agent's latest message, unchanged, as `supervisor_name`'s.

    An agent that has not said anything is an error the model can see.

    Args:
        supervisor_name: Node of the supervisor.
    """

    def forward_message(
        from_agent: Annotated[str, Field(description="Name of the agent whose message is the answer.")],
        runtime: ToolRuntime[Any, Any],
    ) -> Command[Any] | ToolMessage:
        return _forward(from_agent, runtime, supervisor_name)

    return runtime_tool(
        forward_message,
        name=FORWARD_TOOL,
        description="Give an agent's latest message to the user unchanged, as the final answer.",
    )


def _forward(from_agent: str, runtime: ToolRuntime[Any, Any], supervisor_name: str) -> Command[Any] | ToolMessage:
    messages: Sequence[AnyMessage] = runtime.state["messages"]
    request = _requesting_message(messages, runtime.tool_call_id)
    spoken = [m for m in messages if isinstance(m, AIMessage) and m.name == from_agent and m.text]
    if len(request.tool_calls) > 1:
        # A message that also hands over would otherwise both end the run and go on, by chance one or the other.
        return _forward_error(runtime, "call forward_message alone, when nothing else is to be done")
    if not spoken:
        speakers = sorted({str(m.name) for m in messages if isinstance(m, AIMessage) and m.name and m.text})
        return _forward_error(
            runtime, f"no message from {from_agent!r}; messages came from {', '.join(speakers) or 'nobody'}"
        )
    forwarded = AIMessage(spoken[-1].content, name=supervisor_name, id=f"{request.id}-forwarded")
    update = {"messages": [*_without_request(request, runtime.state), forwarded]}
    return _to_parent(END, update)


def _forward_error(runtime: ToolRuntime[Any, Any], message: str) -> ToolMessage:
    return ToolMessage(f"Error: {message}.", tool_call_id=runtime.tool_call_id or "", name=FORWARD_TOOL, status="error")
