"""The five roles of ADR-011, each a LangChain `create_agent`: their prompts, tools and middleware."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic import Field

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import ROLES
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.node_modes import NodeMode, tool_in_mode
from docmind_lab.systems.docmind.graphs.history import TrimHistory
from docmind_lab.systems.docmind.graphs.supervisor_state import MultiAgentGraphState
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources, Strategy, create_retrieve_documents
from docmind_lab.systems.docmind.runtime_tools import runtime_tool

SUPERVISOR_PROMPT = """You are the supervisor of DocMind, a system that answers questions from documents.
Hand over to one agent at a time: router_agent first, then planner_agent if the question is complex, retrieval_agent,
synthesis_agent, validation_agent. With a plan of several tasks, hand over to retrieval_agent once for each task in
one message. If validation asks for a correction, hand over to the agent it names, once. When the answer is
validated, use forward_message with from_agent="synthesis_agent"; if it could not be, give the answer and say so."""

ROLE_PROMPTS = {
    "router": """You are the router of DocMind. Choose how to search for the question with choose_route: strategy
"graph" for what is related, compared or different, "hierarchical" for an overview
or a whole section, "hybrid" otherwise; complexity "complex" for a question of several parts.""",
    "planner": """You are the planner of DocMind. Split the question into at most three tasks that can be looked up
on their own, with make_plan.""",
    "retrieval": """You are the retrieval agent of DocMind. Search for your task with retrieve_documents, by the
strategy that the router chose; when validation asked for another route, by another strategy.""",
    "synthesis": """You are the synthesis agent of DocMind. Answer the question from the retrieved documents alone, in
a few sentences, each followed by the id of its document in square brackets.""",
    "validation": """You are the validation agent of DocMind. Check that every statement of the answer is supported
by the document it cites, and report with report_validation: verdict "accept", or "correct" with the agent to go to.""",
}


def _decision(runtime: ToolRuntime[Any, Any], name: str, key: str, value: Any, message: Any) -> Command[Any]:
    """Return a command that writes a decision into the state, with its tool message for the model."""
    result = ToolMessage(json.dumps(message), tool_call_id=runtime.tool_call_id or "", name=name)
    return Command(update={key: value, "messages": [result]})


def _decision_tool(function: Callable[..., Command[Any]], name: str, description: str) -> BaseTool:
    return runtime_tool(function, name=name, description=description, return_direct=True)


def _choose_route(
    strategy: Annotated[Strategy, Field(description="How to search.")],
    complexity: Annotated[Literal["simple", "complex"], Field(description="Whether the question has several parts.")],
    runtime: ToolRuntime[Any, Any],
) -> Command[Any]:
    route = {"strategy": strategy, "complexity": complexity}
    return _decision(runtime, "choose_route", "route", route, route)


def _make_plan(
    tasks: Annotated[list[str], Field(description="What to look up, each on its own.", min_length=1, max_length=3)],
    runtime: ToolRuntime[Any, Any],
) -> Command[Any]:
    return _decision(runtime, "make_plan", "plan", tasks, {"tasks": tasks})


def _report_validation(
    verdict: Annotated[Literal["accept", "correct"], Field(description="Whether the answer stands.")],
    score: Annotated[float, Field(ge=0, le=1, description="Share of the statements that are supported.")],
    runtime: ToolRuntime[Any, Any],
    target: Annotated[Literal["", "retrieval", "synthesis"], Field(description="Who should correct it.")] = "",
    unsupported: Annotated[int, Field(ge=0, description="How many statements are not supported.")] = 0,
) -> Command[Any]:
    report = {"verdict": verdict, "score": score, "target": target, "unsupported": unsupported}
    return _decision(runtime, "report_validation", "validation", report, report)


def role_tools(role: str, resources: RetrievalResources | None = None, mode: NodeMode = "own") -> list[BaseTool]:
    """Return the tools of a role, in a fixed order. mode: of their async side, see `base/node_modes.py`."""
    return [tool_in_mode(tool, mode) for tool in _tools(role, resources)]


def _tools(role: str, resources: RetrievalResources | None) -> list[BaseTool]:
    if role == "router":
        return [_decision_tool(_choose_route, "choose_route", "Choose how to search for the question.")]
    if role == "planner":
        return [_decision_tool(_make_plan, "make_plan", "Split the question into tasks.")]
    if role == "retrieval":
        if resources is None:
            raise ConfigurationError("the retrieval role has nothing to search; pass resources=RetrievalResources(...)")
        return [create_retrieve_documents(resources)]
    if role == "validation":
        return [_decision_tool(_report_validation, "report_validation", "Report whether the answer is supported.")]
    return []


def build_role_agents(
    model: BaseChatModel,
    *,
    resources: RetrievalResources,
    request_timeout_s: float | None = None,
    middleware: Callable[[str], Sequence[AgentMiddleware[Any, Any, Any]]] = lambda role: (),
    mode: NodeMode = "own",
) -> list[CompiledStateGraph[Any, Any, Any, Any]]:
    """Build the five agents in the order of their roles, named "router_agent" and so on.

    Every agent carries `MultiAgentGraphState`, and with it the deadline.

    Args:
        model: Of all five.
        resources: What retrieval searches.
        request_timeout_s: Cap of one model request under propagation.
        middleware: More of it for a role, put outside of ours.
        mode: Of the async side of the tools; that of the model is the model's own.
    """
    return [
        create_agent(
            model,
            tools=role_tools(role, resources, mode),
            system_prompt=ROLE_PROMPTS[role],
            middleware=role_middleware(role, request_timeout_s, middleware(role)),
            state_schema=MultiAgentGraphState,
            name=f"{role}_agent",
        )
        for role in ROLES
    ]


def role_middleware(
    role: str, request_timeout_s: float | None = None, more: Sequence[AgentMiddleware[Any, Any, Any]] = ()
) -> list[AgentMiddleware[Any, Any, Any]]:
    """Return the middleware that every role's model calls pass through; also for the supervisor."""
    return [*more, TrimHistory(), ModelCalls(role, request_timeout_s=request_timeout_s)]
