"""What the providers refuse a conversation for: tool calls without their results, and results without their calls.

    refusal_of({"messages": [...]}, "openai_chat")   # the 400 that the provider answers, or None

Each provider's own words say what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from docmind_lab.services.dialects.dialect_exchange import Refusal


class _Rules(NamedTuple):
    """A provider's words for a call without a result, for a result without a call, and for a second result of a call.

    by_id: whether a result names its call; only how many there are counts otherwise. at_once: whether the results come
    directly after the message that calls. param: the part of the request that the refusal names.
    """

    no_result: str
    no_call: str
    twice: str
    by_id: bool = True
    at_once: bool = True
    param: str = "messages.[{}].role"


_OF_GEMINI: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_RULES: Final = {
    "openai_chat": _Rules(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "Duplicate value for 'tool_call_id' of '{}'",
    ),
    "openai_responses": _Rules(
        "No tool output found for function call {}.",
        "No tool call found for function call output with call_id {}.",
        "",
        at_once=False,
        param="input",
    ),
    "anthropic_messages": _Rules(
        "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message.",
        "messages: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have "
        "a corresponding `tool_use` block in the previous message.",
        "messages: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}",
    ),
    "gemini": _Rules(_OF_GEMINI, _OF_GEMINI, _OF_GEMINI, by_id=False),
}


def refusal_of(chat: Mapping[str, Any], dialect: str) -> Refusal | None:
    """Return how a provider refuses a request for its conversation; None for one that it takes.

    Args:
        chat: The request as a chat completion.
        dialect: Name of the dialect's module: "openai_chat", "openai_responses", "anthropic_messages" or "gemini".
            Others have no rules.
    """
    rules = _RULES.get(dialect)
    if rules is None:
        return None
    waiting: list[str] = []
    answered: set[str] = set()
    asked_at = 0

    def refused(message: str, call_id: str, position: int) -> Refusal:
        return Refusal(400, message.format(call_id), param=rules.param.format(position))

    for position, message in enumerate(_mappings(chat.get("messages"))):
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id")) if rules.by_id else ""
            if call_id in waiting:
                waiting.remove(call_id)
                answered.add(call_id)
            elif rules.at_once or call_id not in answered:
                return refused(rules.twice if call_id in answered else rules.no_call, call_id, position)
            continue
        if rules.at_once:
            if waiting:
                break
            # Ids are those of one message: a later one may use them again.
            answered, asked_at = set(), position
        waiting += [str(call.get("id")) if rules.by_id else "" for call in _mappings(message.get("tool_calls"))]
    return refused(rules.no_result, ", ".join(waiting if rules.at_once else waiting[:1]), asked_at) if waiting else None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
