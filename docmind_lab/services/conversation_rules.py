"""What the providers refuse a conversation for: tool calls without their results, and results without their calls.

    refusal_of({"messages": [...]}, "openai_chat")   # the 400 that the provider answers, or None

Each provider's own words say what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from docmind_lab.services.dialects.dialect_exchange import Refusal


def refusal_of(payload: Mapping[str, Any], dialect: str) -> Refusal | None:
    """Return how the provider refuses a request for its conversation; None for one that it takes.

    Args:
        payload: The body of the request, in the dialect; of Anthropic's, the chat completion that it is translated to.
        dialect: Name of the dialect's module: "openai_chat", "openai_responses", "anthropic_messages" or "gemini".
            Others have no rules.
    """
    check = {"openai_responses": _responses, "gemini": _gemini}.get(dialect)
    if check is not None:
        return check(payload)
    return _in_turn(payload, _WORDS[dialect]) if dialect in _WORDS else None


_WORDS: Final = {
    "openai_chat": (
        (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
        ),
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        "Duplicate value for 'tool_call_id' of '{}'",
    ),
    "anthropic_messages": (
        (
            "messages: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` "
            "block must have a corresponding `tool_result` block in the next message."
        ),
        (
            "messages: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must have "
            "a corresponding `tool_use` block in the previous message."
        ),
        "messages: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}",
    ),
}
"""Dialect → its words for a call without a result, a result without a call, and a second result of a call."""


def _in_turn(payload: Mapping[str, Any], words: tuple[str, str, str]) -> Refusal | None:
    """Check that each call has one result, directly after the message that calls."""
    no_result, no_call, twice = words
    waiting: list[str] = []
    answered: set[str] = set()
    asked_at = 0

    def refused(message: str, call_id: str, position: int) -> Refusal:
        return Refusal(400, message.format(call_id), param=f"messages.[{position}].role")

    for position, message in enumerate(_mappings(payload.get("messages"))):
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in waiting:
                return refused(twice if call_id in answered else no_call, call_id, position)
            waiting.remove(call_id)
            answered.add(call_id)
            continue
        if waiting:
            break
        waiting = [str(call.get("id")) for call in _mappings(message.get("tool_calls"))]
        # Ids are those of one message: a later one may use them again.
        answered, asked_at = set(), position
    return refused(no_result, ", ".join(waiting), asked_at) if waiting else None


def _responses(payload: Mapping[str, Any]) -> Refusal | None:
    items = _mappings(payload.get("input"))
    called = [str(item.get("call_id")) for item in items if item.get("type") == "function_call"]
    results = [str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"]
    if missing := [each for each in called if each not in results]:
        return Refusal(400, f"No tool output found for function call {missing[0]}.", param="input")
    # The calls of an earlier response are at the provider.
    unknown = [each for each in results if each not in called] if not payload.get("previous_response_id") else []
    if unknown:
        message = f"No tool call found for function call output with call_id {unknown[0]}."
        return Refusal(400, message, param="input")
    return None


def _gemini(payload: Mapping[str, Any]) -> Refusal | None:
    waiting = 0
    # A turn without parts at the end: the calls of the last one have had no results.
    for content in [*_mappings(payload.get("contents")), {}]:
        parts = _mappings(content.get("parts"))
        if sum("functionResponse" in part for part in parts) != waiting:
            message = (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
            return Refusal(400, message)
        waiting = sum("functionCall" in part for part in parts)
    return None


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
