"""`WrapUpMiddleware`: the policy `wrap_up` for one agent of LangChain, without hooks.

agent = create_agent(model, tools, middleware=[dl.WrapUpMiddleware(dl.WrapUp(reserve_s=8))])
with dl.deadline(60):
    agent.invoke(inputs)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import SystemMessage, ToolMessage
from langgraph.types import Command

from docmind_lab.alternatives.held_tools import refusal
from docmind_lab.core.deadlines import current_policy, in_force, policy_scope
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.time_policies import WrapUp
from docmind_lab.network.wrapping_up import only_hands_over, reserve_in_force, with_line

ToolResult = ToolMessage | Command[Any]


def request_with_line(request: ModelRequest[Any], line: str) -> ModelRequest[Any]:
    """Return the request with a line at the end of its system message; itself for an empty one."""
    own = None if request.system_message is None else request.system_message.content
    return request.override(system_message=SystemMessage(with_line(own, line))) if line else request


def without_tools(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """Return the request without tools, so that the model answers; for Anthropic they stay, and may not be called.

    Anthropic asks for the declaration of tools that the conversation has calls of.
    """
    if getattr(request.model, "_llm_type", "") == "anthropic-chat":
        return request.override(tool_choice={"type": "none"})
    # OpenAI takes it beside tools only.
    settings = {name: value for name, value in request.model_settings.items() if name != "parallel_tool_calls"}
    return request.override(tools=[], tool_choice=None, model_settings=settings)


class WrapUpMiddleware(ShownAsCode, AgentMiddleware[Any, Any, Any]):
    """Tells the model of one agent that time is short, and refuses its tools, in the reserve before the deadline.

    The deadline is that in force around the agent: of `enforce`, of `deadline`, or of a run of the lab. Where `enforce`
    has the policy too, each request is told once. A request of a tool under way is ended by `enforce` alone.

    Args:
        wrap_up: The policy.

    Raises:
        ConfigurationError: It is no `WrapUp`.
    """

    def __init__(self, wrap_up: WrapUp) -> None:
        super().__init__()
        if not isinstance(wrap_up, WrapUp):
            raise ConfigurationError(f"wrap_up must be a WrapUp, not {wrap_up!r}; try dl.WrapUp(reserve_s=8)")
        self.wrap_up = wrap_up

    def __repr__(self) -> str:
        return f"dl.WrapUpMiddleware({self.wrap_up!r})"

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Make one model call, sync."""
        request, scope = self._wrap_up_request(request)
        with scope:
            return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Make one model call, async."""
        request, scope = self._wrap_up_request(request)
        with scope:
            return await handler(request)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        """Run one tool, sync, or refuse it."""
        return self._refusal(request) or handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run one tool, async, or refuse it."""
        return self._refusal(request) or await handler(request)

    def _wrap_up_request(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], AbstractContextManager[None]]:
        """Return the request to make, and a scope in which the network does not change it again."""
        reserve = reserve_in_force(self.wrap_up)
        if reserve is None or reserve.begins_in_s > 0:
            return request, nullcontext()
        reserve.note("told", str(getattr(request.model, "_llm_type", "")), reserve.line)
        told, policy = request_with_line(request, reserve.line), current_policy()
        # One that demands a tool is answered by it.
        may_choose = request.tool_choice in (None, "auto", {"type": "auto"})
        supervises = only_hands_over(str(getattr(tool, "name", "")) for tool in request.tools)
        if self.wrap_up.stop_tools and request.tools and may_choose and not supervises:
            told = without_tools(told)
        untouched = dataclasses.replace(policy, policies=dataclasses.replace(policy.policies, wrap_up=None))
        return told, policy_scope(untouched, in_force().run)

    def _refusal(self, request: ToolCallRequest) -> ToolMessage | None:
        call, tool = request.tool_call, request.tool
        return refusal(call["name"], call["id"], self.wrap_up, is_answer=tool is not None and tool.return_direct)
