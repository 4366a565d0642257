"""What the providers refuse a conversation for: tool calls without their results, and results without their calls.

    refusal_of({"messages": [...]}, "openai_chat")   # the 400 that the provider answers, or None

Each provider's rules are checked on the request as it was sent, and its own words say what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from docmind_lab.services.dialects.dialect_exchange import Refusal


def refusal_of(payload: Mapping[str, Any], dialect: str) -> Refusal | None:
    """Return how the provider refuses a request for its conversation; None for one that it takes.

    payload: the body of the request, in the dialect. dialect: name of the dialect's module: "openai_chat",
    "openai_responses", "anthropic_messages" or "gemini". Others have no rules.
    """
    check = _RULES.get(dialect)
    return None if check is None else check(payload)


def _refused(message: str, position: int, part: str = "") -> Refusal:
    return Refusal(400, message, param=f"messages.[{position}].{part or 'role'}")


def _chat(payload: Mapping[str, Any]) -> Refusal | None:
    waiting: list[str] = []
    answered: set[str] = set()
    asked_at = 0
    for position, message in enumerate(_mappings(payload.get("messages"))):
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id in answered:
                return _refused(f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{position}]", position)
            if call_id not in waiting:
                return _refused(_NO_CALL_OF_CHAT, position)
            waiting.remove(call_id)
            answered.add(call_id)
            continue
        if waiting:
            return _refused(_NO_RESULT_OF_CHAT + ", ".join(waiting), asked_at)
        waiting = [str(call.get("id")) for call in _mappings(message.get("tool_calls"))]
        # Ids are those of one message: a later one may use them again.
        answered, asked_at = set(), position
    return _refused(_NO_RESULT_OF_CHAT + ", ".join(waiting), asked_at) if waiting else None


_NO_CALL_OF_CHAT: Final = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)
_NO_RESULT_OF_CHAT: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
    "following tool_call_ids did not have response messages: "
)


def _anthropic(payload: Mapping[str, Any]) -> Refusal | None:
    waiting: list[str] = []
    for position, message in enumerate(_mappings(payload.get("messages"))):
        blocks = _mappings(message.get("content"))
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        unknown = next((each for each in results if each not in waiting), None)
        if unknown is not None:
            return Refusal(
                400,
                f"messages.{position}.content.{results.index(unknown)}: unexpected `tool_use_id` found in "
                f"`tool_result` blocks: {unknown}. Each `tool_result` block must have a corresponding `tool_use` block "
                "in the previous message.",
            )
        missing = [each for each in waiting if each not in results]
        if missing:
            return _unanswered_use(position - 1, missing)
        twice = next((each for each in results if results.count(each) > 1), None)
        if twice is not None:
            return Refusal(
                400,
                f"messages.{position}.content: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {twice}",
            )
        waiting = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return _unanswered_use(len(payload.get("messages") or ()) - 1, waiting) if waiting else None


def _unanswered_use(position: int, missing: Sequence[str]) -> Refusal:
    return Refusal(
        400,
        f"messages.{position}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message.",
    )


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
    for content in _mappings(payload.get("contents")):
        parts = _mappings(content.get("parts"))
        results = sum("functionResponse" in part for part in parts)
        if results != waiting:
            return Refusal(400, _UNEQUAL_OF_GEMINI)
        waiting = sum("functionCall" in part for part in parts)
    return Refusal(400, _UNEQUAL_OF_GEMINI) if waiting else None


_UNEQUAL_OF_GEMINI: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)

_RULES: Final = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _anthropic,
    "gemini": _gemini,
}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []
