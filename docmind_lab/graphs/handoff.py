"""Tools by which the supervisor hands over to an agent, or passes an agent's message on as the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END
from langgraph.types import Command, Send
from pydantic import Field

from docmind_lab.deadlines import DEADLINE_KEY
from docmind_lab.errors import GraphError
from docmind_lab.graphs.state import HANDED_DOWN
from docmind_lab.recorder import current_recorder

HANDOFF_PREFIX = "transfer_to_"
FORWARD_TOOL = "forward_message"
TASK_PREFIX = "Task: "
_AGENT, _LIMIT = "handoff_to", "handoff_limit"


def normalised_name(agent_name: str) -> str:
    """The agent's name as it stands in a tool's name: lower case, anything but letters, digits and _ turned into _.

    Raises: GraphError for a name with nothing left.
    """
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
    """A tool that hands over to `agent_name` in the parent graph.

    The agent gets the conversation so far, and a task of its own if the model gives one. Several handoffs in one
    model message become parallel `Send`s.
    max_visits: handing over to the same agent more often is refused with an error that the model can see.
    """
    tool_name = name or HANDOFF_PREFIX + normalised_name(agent_name)

    def hand_over(
        runtime: ToolRuntime[Any, Any],
        task: Annotated[str, Field(description="A part of the question for the agent; empty for all of it.")] = "",
    ) -> Command[Any] | ToolMessage:
        return _hand_over(runtime, tool_name, add_handoff_messages)

    async def hand_over_async(
        runtime: ToolRuntime[Any, Any],
        task: Annotated[str, Field(description="A part of the question for the agent; empty for all of it.")] = "",
    ) -> Command[Any] | ToolMessage:
        return _hand_over(runtime, tool_name, add_handoff_messages)

    return StructuredTool.from_function(
        func=hand_over,
        coroutine=hand_over_async,
        name=tool_name,
        description=description or f"Hand over to {agent_name}.",
        metadata={_AGENT: agent_name, _LIMIT: max_visits},
    )


def _hand_over(runtime: ToolRuntime[Any, Any], tool_name: str, add_messages: bool) -> Command[Any] | ToolMessage:
    """One tool call's part in a message's handoffs.

    The agent runs each tool call as a task of its own, and of several parent commands LangGraph keeps the first. So
    the first admitted call commands all of them, and the others only answer.
    """
    state: Mapping[str, Any] = runtime.state
    handoffs = {tool.name: tool.metadata or {} for tool in runtime.tools if _AGENT in (tool.metadata or {})}
    request = _requesting_message(state["messages"], runtime.tool_call_id)
    visits: Mapping[str, int] = state.get("visits", {})
    asked = [call for call in request.tool_calls if call["name"] in handoffs]
    admitted = [
        call for call in asked if visits.get(handoffs[call["name"]][_AGENT], 0) < handoffs[call["name"]][_LIMIT]
    ]
    own = next(call for call in asked if call["id"] == runtime.tool_call_id)
    agent = str(handoffs[tool_name][_AGENT])
    if own not in admitted:
        return _refusal(runtime, tool_name, agent, visits.get(agent, 0))
    if own is not admitted[0]:
        return _breadcrumb(own, agent)
    # The results of other tools in the same message are lost with a parent command; so are their requests.
    added: list[AnyMessage] = [request.model_copy(update={"tool_calls": admitted})]
    added += [_breadcrumb(call, str(handoffs[call["name"]][_AGENT])) for call in admitted]
    if not add_messages:
        added = []
    ordinal = state.get("handoff_ordinal", 0) + 1
    agents = [str(handoffs[call["name"]][_AGENT]) for call in admitted]
    sends = [
        Send(target, _handed_down(state, request, added, str(call["args"].get("task", "")), ordinal, index))
        for index, (target, call) in enumerate(zip(agents, admitted, strict=True))
    ]
    update = {
        "messages": added,
        "handoff_ordinal": ordinal,
        "visits": {target: visits.get(target, 0) + 1 for target in agents},
    }
    # A tuple: of a list of sends LangGraph's tool node would drop the update.
    return Command(graph=Command.PARENT, goto=tuple(sends), update=update)


def _handed_down(
    state: Mapping[str, Any], request: AIMessage, added: list[AnyMessage], task: str, ordinal: int, index: int
) -> dict[str, Any]:
    """What an agent starts from: the state as it is, the conversation, and its place in the run."""
    handed = {key: value for key, value in state.items() if key not in HANDED_DOWN}
    messages = [message for message in state["messages"] if message.id != request.id] + added
    if task:
        messages.append(HumanMessage(TASK_PREFIX + task))
    handed |= {"messages": messages, "task": task, "handoff_ordinal": ordinal, "fan_out_index": index}
    if DEADLINE_KEY in state:
        handed[DEADLINE_KEY] = state[DEADLINE_KEY]
    return handed


def _refusal(runtime: ToolRuntime[Any, Any], tool_name: str, agent: str, visited: int) -> ToolMessage:
    recorder = current_recorder()
    if recorder is not None:
        recorder.event("handoff_refused", "supervisor", agent=agent, reason="visits")
    return ToolMessage(
        f"Error: {agent} has been handed over to {visited} times; finish with what there is.",
        tool_call_id=runtime.tool_call_id or "",
        name=tool_name,
        status="error",
    )


def _requesting_message(messages: Sequence[AnyMessage], tool_call_id: str | None) -> AIMessage:
    for message in reversed(messages):
        if isinstance(message, AIMessage) and any(call["id"] == tool_call_id for call in message.tool_calls):
            return message
    raise GraphError("a handoff tool was called outside a supervisor: no message asks for it")


def _breadcrumb(call: Mapping[str, Any], agent: str) -> ToolMessage:
    return ToolMessage(f"Successfully handed over to {agent}.", tool_call_id=call["id"], name=call["name"])


def create_forward_message_tool(supervisor_name: str = "supervisor") -> BaseTool:
    """A tool that ends the run with an agent's latest message, unchanged and under the supervisor's name.

    An agent that has not said anything is an error the model can see.
    """

    def forward_message(
        from_agent: Annotated[str, Field(description="Name of the agent whose message is the answer.")],
        runtime: ToolRuntime[Any, Any],
    ) -> Command[Any] | ToolMessage:
        return _forward(from_agent, runtime, supervisor_name)

    async def forward_message_async(
        from_agent: Annotated[str, Field(description="Name of the agent whose message is the answer.")],
        runtime: ToolRuntime[Any, Any],
    ) -> Command[Any] | ToolMessage:
        return _forward(from_agent, runtime, supervisor_name)

    return StructuredTool.from_function(
        func=forward_message,
        coroutine=forward_message_async,
        name=FORWARD_TOOL,
        description="Give an agent's latest message to the user unchanged, as the final answer.",
    )


def _forward(from_agent: str, runtime: ToolRuntime[Any, Any], supervisor_name: str) -> Command[Any] | ToolMessage:
    messages: Sequence[AnyMessage] = runtime.state["messages"]
    said = [m for m in messages if isinstance(m, AIMessage) and m.name == from_agent and m.text]
    if not said:
        speakers = sorted({str(m.name) for m in messages if isinstance(m, AIMessage) and m.name and m.text})
        return ToolMessage(
            f"Error: no message from {from_agent!r}; messages came from {', '.join(speakers) or 'nobody'}.",
            tool_call_id=runtime.tool_call_id or "",
            name=FORWARD_TOOL,
            status="error",
        )
    forwarded = AIMessage(said[-1].content, name=supervisor_name, id=f"{said[-1].id}-forwarded")
    return Command(graph=Command.PARENT, goto=END, update={"messages": [forwarded]})
