"""The supervisor graph: a central agent that hands over to others and collects what they report (ADR-011)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast, get_type_hints
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite

from docmind_lab.deadlines import DEADLINE_KEY, Deadline, current_policy
from docmind_lab.errors import ConfigurationError, DeadlineError, GraphError
from docmind_lab.graphs.handoff import HANDBACK_PREFIX, create_handoff_tool, normalised_name
from docmind_lab.graphs.history import whole_messages
from docmind_lab.graphs.state import HANDED_DOWN, OF_ONE_QUESTION, MultiAgentGraphState

NEW_QUESTION = "new_question"
OutputMode = Literal["last_message", "full_history"]
_NOT_GIVEN = object()


@dataclass(frozen=True)
class SupervisorBuildParams:
    """Options of the supervisor graph.

    output_mode: what an agent adds to the conversation: its "last_message" (the last two when the last is a tool's
        result) or its "full_history". add_handoff_messages: leave breadcrumbs of each handoff in the conversation.
    add_handoff_back_messages: deprecated; adds a breadcrumb when an agent returns.
    max_concurrent_agents: agents that run side by side after one message; None for the machine's own limit.
    max_visits: handoffs to the same agent in one run; more are refused with an error the model can see.
    """

    supervisor_name: str = "supervisor"
    output_mode: OutputMode = "last_message"
    add_handoff_messages: bool = True
    add_handoff_back_messages: Any = _NOT_GIVEN
    max_concurrent_agents: int | None = 3
    max_visits: int = 3

    def __post_init__(self) -> None:
        mode: str = self.output_mode
        if mode == "structured":
            raise ConfigurationError(
                "output_mode 'structured' is not supported: structured data belongs in the graph's state "
                "(state_schema) or in an agent's response_format; use 'last_message' or 'full_history'"
            )
        if mode not in ("last_message", "full_history"):
            raise ConfigurationError(f"output_mode must be 'last_message' or 'full_history', not {self.output_mode!r}")
        if self.add_handoff_back_messages is not _NOT_GIVEN:
            warnings.warn(
                "add_handoff_back_messages is deprecated; use add_handoff_messages", DeprecationWarning, stacklevel=3
            )
        if self.max_concurrent_agents is not None and self.max_concurrent_agents < 1:
            raise ConfigurationError(f"max_concurrent_agents must be 1 or more, not {self.max_concurrent_agents}")
        if self.max_visits < 1:
            raise ConfigurationError(f"max_visits must be 1 or more, not {self.max_visits}")

    @property
    def adds_back_messages(self) -> bool:
        """Whether breadcrumbs of returning agents are added."""
        return self.add_handoff_back_messages is not _NOT_GIVEN and bool(self.add_handoff_back_messages)


class SupervisorGraph(StateGraph[Any, Any, Any, Any]):
    """An uncompiled supervisor graph that remembers how many agents may run side by side."""

    max_concurrent_agents: int | None = None

    def compile(self, *args: Any, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """`StateGraph.compile`, with the bound on concurrent agents set for every run of the result."""
        compiled = super().compile(*args, **kwargs)
        if self.max_concurrent_agents is None:
            return compiled
        return compiled.with_config({"max_concurrency": self.max_concurrent_agents})


def build_multi_agent_supervisor_graph(
    agents: Sequence[CompiledStateGraph[Any, Any, Any, Any]],
    *,
    model: BaseChatModel,
    prompt: str,
    state_schema: type[Any] | None = None,
    context_schema: type[Any] | None = None,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    extra_tools: Sequence[BaseTool] = (),
    params: SupervisorBuildParams | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """The uncompiled graph of a supervisor over `agents` (ADR-011).

    Each agent is a compiled graph with a name; the supervisor gets a handoff tool for each, in the order given.
    Agents add only what is new to the conversation, and write back only what they changed.

    Raises: GraphError for no agents, agents without a name, or two whose names are the same in a tool's name.
    """
    options = params or SupervisorBuildParams()
    schema = state_schema or MultiAgentGraphState
    names = _checked_names(agents, options.supervisor_name)
    handoffs = [
        create_handoff_tool(
            agent_name=name, add_handoff_messages=options.add_handoff_messages, max_visits=options.max_visits
        )
        for name in names
    ]
    graph = SupervisorGraph(schema, context_schema=context_schema)
    supervisor = create_agent(
        model,
        tools=[*handoffs, *extra_tools],
        system_prompt=prompt,
        middleware=middleware,
        state_schema=_without_managed(schema, graph),
        context_schema=context_schema,
        name=options.supervisor_name,
    )
    graph.max_concurrent_agents = options.max_concurrent_agents
    graph.add_node(options.supervisor_name, supervisor, destinations=(*names, END))
    _add_entry(graph, options.supervisor_name)
    for name, agent in zip(names, agents, strict=True):
        graph.add_node(name, _AgentNode(agent, name, options), destinations=(options.supervisor_name, END))
    return graph


def _without_managed(schema: type[Any], graph: SupervisorGraph) -> type[Any]:
    """The schema without what LangGraph manages itself (`remaining_steps`), which an agent may not have as input."""
    if not graph.managed:
        return schema
    hints = get_type_hints(schema, include_extras=True)
    make_schema: Any = TypedDict
    made: type[Any] = make_schema(
        schema.__name__, {key: hint for key, hint in hints.items() if key not in graph.managed}
    )
    return made


def _add_entry(graph: StateGraph[Any, Any, Any, Any], supervisor_name: str) -> None:
    """Start at the supervisor; on a thread that has answered before, drop first what the last question led to."""
    empty = {
        key: Overwrite(value) if isinstance(graph.channels[key], BinaryOperatorAggregate) else value
        for key, value in OF_ONE_QUESTION.items()
        if key in graph.channels
    }

    def entry(state: Mapping[str, Any]) -> str:
        return NEW_QUESTION if state.get("visits") or state.get("stop_reason") else supervisor_name

    def forget(state: Mapping[str, Any]) -> dict[str, Any]:
        return empty

    graph.add_node(NEW_QUESTION, _OfBothColours(forget, NEW_QUESTION))
    graph.add_conditional_edges(START, _OfBothColours(entry, "entry"), [NEW_QUESTION, supervisor_name])
    graph.add_edge(NEW_QUESTION, supervisor_name)


def _checked_names(agents: Sequence[CompiledStateGraph[Any, Any, Any, Any]], supervisor_name: str) -> list[str]:
    if not agents:
        raise GraphError("a supervisor needs at least one agent; pass agents=[create_agent(..., name='router_agent')]")
    names: list[str] = []
    seen = {normalised_name(supervisor_name): supervisor_name, NEW_QUESTION: NEW_QUESTION}
    for agent in agents:
        name = agent.name
        if not name or name == "LangGraph":
            raise GraphError("an agent has no name; make it with create_agent(..., name='router_agent')")
        normal = normalised_name(name)
        if normal in seen:
            raise GraphError(f"agents {seen[normal]!r} and {name!r} have the same name in a tool; rename one")
        seen[normal] = name
        names.append(name)
    return names


# These are runnables, not functions for LangChain to wrap: a wrapped one would be a run of its own inside the run of
# its node, and LangGraph would run a function of one colour in a thread of a run of the other. `input` is the name
# that LangChain gives the parameter.


class _OfBothColours(Runnable[Any, Any]):
    """A function that never waits, alike in sync and async runs."""

    def __init__(self, function: Callable[[Mapping[str, Any]], Any], name: str) -> None:
        self.function, self.name = function, name

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - see above
        return self.function(input)

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - see above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        return self.function(input)


class _AgentNode(Runnable[Any, Command[Any]]):
    """Runs one agent inside the parent graph and turns its result into a delta of the parent's state."""

    name: str

    def __init__(
        self, agent: CompiledStateGraph[Any, Any, Any, Any], name: str, options: SupervisorBuildParams
    ) -> None:
        self.agent, self.name, self.options = agent, name, options

    def invoke(
        self,
        input: dict[str, Any],  # noqa: A002 - see above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Command[Any]:
        state = _with_deadline_of_run(input, config)
        last: Mapping[str, Any] = state
        try:
            # Streamed, so that what the agent had is kept when its budget ends in the middle.
            for values in self.agent.stream(state, config, stream_mode="values"):
                last = values
        except DeadlineError as error:
            return self._cut(state, last, error)
        return self._returned(state, last)

    async def ainvoke(
        self,
        input: dict[str, Any],  # noqa: A002 - see above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Command[Any]:
        state = _with_deadline_of_run(input, config)
        last: Mapping[str, Any] = state
        try:
            async for values in self.agent.astream(state, config, stream_mode="values"):
                last = values
        except DeadlineError as error:
            return self._cut(state, last, error)
        return self._returned(state, last)

    def _returned(self, state: Mapping[str, Any], final: Mapping[str, Any]) -> Command[Any]:
        return Command(goto=self.options.supervisor_name, update=self._delta(state, final))

    def _cut(self, state: Mapping[str, Any], last: Mapping[str, Any], error: DeadlineError) -> Command[Any]:
        """What the agent had so far, and the end of the run; back to the supervisor if only a reserve is left."""
        delta = self._delta(state, last)
        deadline, policy = Deadline.from_state(state), current_policy()
        if deadline is None or not policy.reserve_s or deadline.remaining() <= policy.floor_s:
            return Command(goto=END, update={**delta, "stop_reason": error.stop_reason})
        note = AIMessage(f"{self.name} ran out of its part of the time; go on with what there is.", name=self.name)
        return Command(goto=self.options.supervisor_name, update={**delta, "messages": [*delta["messages"], note]})

    def _delta(self, state: Mapping[str, Any], final: Mapping[str, Any]) -> dict[str, Any]:
        before = {message.id for message in state["messages"]}
        new = [message for message in final["messages"] if message.id not in before]
        delta = {
            key: value for key, value in final.items() if key not in HANDED_DOWN and value != state.get(key, _NOT_GIVEN)
        }
        return {**delta, "messages": self._reported(new)}

    def _reported(self, new: Sequence[AnyMessage]) -> list[AnyMessage]:
        # An agent that was cut may have asked for tools whose results never came.
        messages = whole_messages([_named(message, self.name) for message in new if message.type != "human"])
        if self.options.output_mode == "last_message":
            messages = messages[_start_of_last(messages) :]
        if self.options.adds_back_messages:
            messages += self._handed_back()
        return messages

    def _handed_back(self) -> list[AnyMessage]:
        """The breadcrumb of a return: a call without text, so that nobody takes it for what the agent says."""
        supervisor = self.options.supervisor_name
        call = ToolCall(name=HANDBACK_PREFIX + normalised_name(supervisor), args={}, id=f"back-{uuid4().hex}")
        return [
            AIMessage("", name=self.name, tool_calls=[call]),
            ToolMessage(f"Successfully handed back to {supervisor}.", tool_call_id=call["id"], name=call["name"]),
        ]


def _with_deadline_of_run(state: dict[str, Any], config: RunnableConfig | None) -> dict[str, Any]:
    """The agent's state with the deadline of the run under way.

    What it was handed may come from a checkpoint, with the deadline of the run that was interrupted.
    """
    of_run = (config or {}).get("configurable", {}).get(DEADLINE_KEY)
    return state if of_run is None else {**state, DEADLINE_KEY: of_run}


def _start_of_last(messages: Sequence[AnyMessage]) -> int:
    """Where the last message begins; a tool's result makes sense only with the message that asked for it."""
    start = max(0, len(messages) - 1)
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1
    return start


def _named(message: AnyMessage, name: str) -> AnyMessage:
    if isinstance(message, AIMessage) and not message.name:
        return cast("AnyMessage", message.model_copy(update={"name": name}))
    return message
