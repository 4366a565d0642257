"""The supervisor graph: a central agent that hands over to others and collects their results (ADR-011).

Each agent is a node. What it had when its time is over is in the state, and the run ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict, cast, get_type_hints

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite

from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import BudgetError, ConfigurationError, GraphError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.sync_async import Operation, Steps
from docmind_lab.systems.base.steps_node import StepsNode
from docmind_lab.systems.docmind.graphs.handoff import create_handoff_tool, normalised_name
from docmind_lab.systems.docmind.graphs.history import start_of_last, whole_messages
from docmind_lab.systems.docmind.graphs.supervisor_state import HANDED_DOWN, OF_ONE_QUESTION, MultiAgentGraphState

OutputMode = Literal["last_message", "full_history"]


@answers_wrong_names
@dataclass(frozen=True)
class SupervisorBuildParams:
    """Options of the supervisor graph.

    Args:
        supervisor_name: Name of the supervisor's node.
        output_mode: What an agent adds to the conversation: its "last_message" (the last two when the last is a tool's
            result) or its "full_history".
        add_handoff_messages: Leave breadcrumbs of each handoff in the conversation.
        max_concurrent_agents: Agents that run side by side after one message; None for the machine's own limit.
        max_visits: Handoffs to the same agent in one run; more are refused with an error the model can see.
    """

    noun: ClassVar[str] = "SupervisorBuildParams"

    supervisor_name: str = "supervisor"
    output_mode: OutputMode = "last_message"
    add_handoff_messages: bool = True
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
        if self.max_concurrent_agents is not None and self.max_concurrent_agents < 1:
            raise ConfigurationError(f"max_concurrent_agents must be 1 or more, not {self.max_concurrent_agents}")
        if self.max_visits < 1:
            raise ConfigurationError(f"max_visits must be 1 or more, not {self.max_visits}")


_ABSENT = object()


class AgentNode(StepsNode):
    """A node that runs one agent inside the parent graph, and returns its changes to the parent's state."""

    def __init__(
        self, agent: CompiledStateGraph[Any, Any, Any, Any], name: str, options: SupervisorBuildParams
    ) -> None:
        super().__init__(name, self._run)
        self.agent, self.options = agent, options

    def _run(self, handed_down: dict[str, Any], config: RunnableConfig) -> Steps[Command[Any]]:
        """Run the agent and return the command with its changes and the next node."""
        state = _with_deadline_of_run(handed_down, config)
        last: Mapping[str, Any] = state

        # Streamed, so that what the agent had is kept when its budget ends in the middle.
        def run() -> None:
            nonlocal last
            for values in self.agent.stream(state, config, stream_mode="values"):
                last = values

        async def run_async() -> None:
            nonlocal last
            async for values in self.agent.astream(state, config, stream_mode="values"):
                last = values

        try:
            yield Operation(run, run_async)
        except BudgetError as error:
            return Command(goto=END, update={**self._delta(state, last), "stop_reason": error.stop_reason})
        return Command(goto=self.options.supervisor_name, update=self._delta(state, last))

    def _delta(self, state: Mapping[str, Any], final: Mapping[str, Any]) -> dict[str, Any]:
        before = {message.id for message in state["messages"]}
        new = [message for message in final["messages"] if message.id not in before]
        delta = {
            key: value for key, value in final.items() if key not in HANDED_DOWN and value != state.get(key, _ABSENT)
        }
        return {**delta, "messages": self._new_messages(new)}

    def _new_messages(self, new: Sequence[AnyMessage]) -> list[AnyMessage]:
        # An agent that was cut may have asked for tools whose results never came.
        messages = whole_messages([_with_name(message, self.name) for message in new if message.type != "human"])
        if self.options.output_mode == "last_message":
            messages = messages[start_of_last(messages, 1) :]
        return messages


def _with_deadline_of_run(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
    """Return the agent's state with the deadline of the current run, not of the one that a checkpoint is from."""
    of_run = config.get("configurable", {}).get(DEADLINE_KEY)
    return state if of_run is None else {**state, DEADLINE_KEY: of_run}


def _with_name(message: AnyMessage, name: str) -> AnyMessage:
    if isinstance(message, AIMessage) and not message.name:
        return cast("AnyMessage", message.model_copy(update={"name": name}))
    return message


NEW_QUESTION = "new_question"


class SupervisorGraph(StateGraph[Any, Any, Any, Any]):
    """An uncompiled supervisor graph that knows how many agents may run side by side."""

    max_concurrent_agents: int | None = None

    def compile(self, *args: Any, **kwargs: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Compile as `StateGraph.compile` does, with the limit on concurrent agents set for every run."""
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
    """Build the uncompiled graph of a supervisor over `agents` (ADR-011).

    Agents add only what is new to the conversation, and write back only what they changed.

    Args:
        agents: Compiled graphs, each with a name; the supervisor gets a handoff tool for each, in this order.
        model: The supervisor's.
        prompt: The supervisor's system prompt.
        state_schema: Of the graph; `MultiAgentGraphState` when left out.
        context_schema: Of the runtime context.
        middleware: Around the supervisor's model calls.
        extra_tools: Of the supervisor, besides the handoffs.
        params: Other options; the defaults when left out.

    Raises:
        GraphError: There is no agent, one has no name, or two have the same name in a tool's name.
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
        graph.add_node(name, AgentNode(agent, name, options), destinations=(options.supervisor_name, END))
    return graph


def _without_managed(schema: type[Any], graph: SupervisorGraph) -> type[Any]:
    """Return the schema without keys that LangGraph manages (`remaining_steps`), which no agent may take as input."""
    if not graph.managed:
        return schema
    hints = get_type_hints(schema, include_extras=True)
    make_schema: Any = TypedDict
    result: type[Any] = make_schema(
        schema.__name__, {key: hint for key, hint in hints.items() if key not in graph.managed}
    )
    return result


def _add_entry(graph: StateGraph[Any, Any, Any, Any], supervisor_name: str) -> None:
    """Add the entry: start at the supervisor, after clearing what an earlier question on the thread left."""
    empty = {
        key: Overwrite(value) if isinstance(graph.channels[key], BinaryOperatorAggregate) else value
        for key, value in OF_ONE_QUESTION.items()
        if key in graph.channels
    }

    def entry(state: Mapping[str, Any], config: RunnableConfig) -> str:
        return NEW_QUESTION if state.get("visits") or state.get("stop_reason") else supervisor_name

    def forget(state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        return empty

    graph.add_node(NEW_QUESTION, StepsNode(NEW_QUESTION, forget))
    graph.add_conditional_edges(START, StepsNode("entry", entry), [NEW_QUESTION, supervisor_name])
    graph.add_edge(NEW_QUESTION, supervisor_name)


def _checked_names(agents: Sequence[CompiledStateGraph[Any, Any, Any, Any]], supervisor_name: str) -> list[str]:
    if not agents:
        raise GraphError("a supervisor needs at least one agent; pass agents=[create_agent(..., name='router_agent')]")
    names: list[str] = []
    by_name = {normalised_name(supervisor_name): supervisor_name, NEW_QUESTION: NEW_QUESTION}
    for agent in agents:
        name = agent.name
        if not name or name == "LangGraph":
            raise GraphError("an agent has no name; make it with create_agent(..., name='router_agent')")
        normal = normalised_name(name)
        if normal in by_name:
            raise GraphError(f"agents {by_name[normal]!r} and {name!r} have the same name in a tool; rename one")
        by_name[normal] = name
        names.append(name)
    return names
