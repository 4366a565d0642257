"""The conversation as a model is given it: tool calls with their results, and short enough.

    whole_messages     leaves out tool calls without results and results without calls
    TrimHistory        middleware that keeps the conversation short

The middleware works alike in sync and async agents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.docmind.graphs.supervisor_state import MultiAgentGraphState

# Content blocks by which providers repeat a tool call in a message's content; the id is under one of these keys.
_CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call"})


def keep_only_calls(message: AIMessage, call_ids: Collection[str | None]) -> AIMessage:
    """Return the message with only these tool calls, wherever the provider has put the others."""
    content = message.content
    if not isinstance(content, str):
        content = [block for block in content if not _is_other_call(block, call_ids)]
    return message.model_copy(
        update={
            "content": content,
            "tool_calls": [call for call in message.tool_calls if call["id"] in call_ids],
            "invalid_tool_calls": [],
            "additional_kwargs": {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"},
        }
    )


def _is_other_call(block: str | Mapping[Any, Any], call_ids: Collection[str | None]) -> bool:
    if isinstance(block, str) or block.get("type") not in _CALL_BLOCKS:
        return False
    return block.get("call_id", block.get("id")) not in call_ids


def whole_messages(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Drop tool calls without a result, results without a call, and messages that say nothing else."""
    whole: list[AnyMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if not isinstance(message, AIMessage) or not message.tool_calls:
            whole.append(message)
            continue
        call_ids = {call["id"] for call in message.tool_calls}
        after = takewhile(lambda m: isinstance(m, ToolMessage), messages[position + 1 :])
        results = {m.tool_call_id: m for m in after if isinstance(m, ToolMessage) and m.tool_call_id in call_ids}
        if len(results) < len(call_ids):
            message = keep_only_calls(message, results)
        if results or message.text:
            whole += [message, *results.values()]
    return whole


def start_of_last(messages: Sequence[AnyMessage], count: int) -> int:
    """Return where the last messages begin; a tool's result belongs to the message that called the tool."""
    start = max(0, len(messages) - count)
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1
    return start


def trim_messages(messages: Sequence[AnyMessage], keep: int) -> list[AnyMessage]:
    """Return the last `keep` messages or a few more, calls whole, after the user's latest message before them."""
    start = start_of_last(messages, keep)
    question = [message for message in messages[:start] if message.type == "human"][-1:]
    return whole_messages([*question, *messages[start:]])


class TrimHistory(AgentMiddleware[MultiAgentGraphState, Any, Any]):
    """Middleware that replaces the history by `trim_messages` of it before each model call."""

    def __init__(self, keep: int = 40) -> None:
        super().__init__()
        if keep < 2:
            raise ConfigurationError(f"keep must be 2 or more messages, not {keep}")
        self.keep = keep

    def before_model(self, state: MultiAgentGraphState, runtime: Any) -> dict[str, Any] | None:
        """Return the replacement of the history; None if it is short enough."""
        messages = state["messages"]
        if len(messages) <= self.keep:
            return None
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *trim_messages(messages, self.keep)]}

    async def abefore_model(self, state: MultiAgentGraphState, runtime: Any) -> dict[str, Any] | None:
        """`before_model`, as a coroutine."""
        return self.before_model(state, runtime)
