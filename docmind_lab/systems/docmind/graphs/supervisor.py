"""The supervisor graph: a central agent that hands over to others and collects their results (ADR-011)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, get_type_hints

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from docmind_lab.core.errors import GraphError
from docmind_lab.systems.base.steps_node import StepsNode
from docmind_lab.systems.docmind.graphs.agent_node import AgentNode
from docmind_lab.systems.docmind.graphs.build_params import SupervisorBuildParams
from docmind_lab.systems.docmind.graphs.handoff import create_handoff_tool, normalised_name
from docmind_lab.systems.docmind.graphs.supervisor_state import OF_ONE_QUESTION, MultiAgentGraphState

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
