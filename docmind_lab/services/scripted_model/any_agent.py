"""The replies of an agent of any framework: call a tool once, then answer from its result.

The tools on offer decide, not the prompt. Of them, one that takes a `query` is called first. Any other is taken for
the framework's way to hand the question to a sub-agent, and called if no tool on offer has been called yet. A tool
that only takes the final answer is called with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall, message_text

SUB_AGENT: Final = "researcher"
"""What a sub-agent must be called: a hand-over tool that asks for an agent's name is given this one."""

ANSWER_TOKENS: Final = 50
"""Words and punctuation marks of an answer at the most; a result of so many words makes an answer of just so many."""

# Where a framework has the model give its answer by a tool.
_ANSWER_TOOLS = ("final_answer", "final_result")
# Some frameworks put a tool's result into the words of the user.
_OBSERVATION = "Observation:"
_AGENT_NAME = re.compile(r"agent|coworker|member|recipient|assignee|(^|_)name$", re.IGNORECASE)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def reply_of_agent(conversation: Conversation) -> Reply:
    """Return the reply of an agent that knows nothing but its tools; the same request gets the same reply."""
    tool = _next_tool(conversation)
    if tool is not None:
        return Reply(tool_calls=(ToolCall(tool, _arguments(conversation.tools[tool], _task(conversation))),))
    answer = _answer(conversation)
    taking = next((name for name in _ANSWER_TOOLS if name in conversation.tools), None)
    if taking is None:
        return Reply(answer)
    return Reply(tool_calls=(ToolCall(taking, _arguments(conversation.tools[taking], answer)),))


def answers_by_tool(conversation: Conversation) -> bool:
    """Whether the model is to give its answer by a tool, as some frameworks have it."""
    return any(name in conversation.tools for name in _ANSWER_TOOLS)


def is_answering(conversation: Conversation) -> bool:
    """Whether the reply is the answer, not the call of a tool that finds something out."""
    return _next_tool(conversation) is None


def _next_tool(conversation: Conversation) -> str | None:
    called = {
        str(call.get("function", {}).get("name", ""))
        for message in conversation.messages
        for call in message.get("tool_calls") or ()
    }
    if _observations(conversation):
        return None
    searches = [name for name, schema in conversation.tools.items() if "query" in schema.get("properties", {})]
    others = [name for name in conversation.tools if name not in _ANSWER_TOOLS]
    offered = searches or others
    return None if called.intersection(offered) else next(iter(offered), None)


def _observations(conversation: Conversation) -> list[str]:
    texts = (message_text(m) for m in conversation.messages if m.get("role") == "user")
    return [text for text in texts if text.startswith(_OBSERVATION)]


def _task(conversation: Conversation) -> str:
    texts = (message_text(m) for m in reversed(conversation.messages) if m.get("role") == "user")
    return next((text for text in texts if text), "What is to be done?")


def _answer(conversation: Conversation) -> str:
    results = [message_text(m) for m in conversation.messages if m.get("role") == "tool"]
    text = next(reversed([*results, *_observations(conversation)]), "") or "There is nothing to answer from."
    ends = [match.end() for match in _TOKEN.finditer(text)]
    return text if len(ends) <= ANSWER_TOKENS else text[: ends[ANSWER_TOKENS - 1]]


def _arguments(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = schema.get("required") or list(properties)
    return {name: _value(name, properties.get(name, {}), text) for name in required}


def _value(name: str, schema: Mapping[str, Any], text: str) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [_value(name, schema.get("items", {}), text) for _ in range(schema.get("minItems", 0))]
    if kind == "object":
        return _arguments(schema, text)
    if kind in ("boolean", "integer", "number"):
        return {"boolean": False, "integer": 1, "number": 1.0}[kind]
    return SUB_AGENT if _AGENT_NAME.search(name) else text
