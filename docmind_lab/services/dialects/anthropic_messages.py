"""Anthropic's messages: POST …/v1/messages, as JSON and as events, and its count of tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.services.dialects.dialect_exchange import (
    Dialect,
    Message,
    Refusal,
    Rendering,
    Route,
    called,
    event,
    format_of,
    messages_of_one,
    objects_in,
)
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.services.scripted_model.conversation import message_text
from docmind_lab.services.scripted_model.tokens import pieces_of

_ERROR_TYPES = {
    "not_found": "not_found_error",
    "rate_limit": "rate_limit_error",
    "server": "api_error",
    "unavailable": "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class MessageRendering(Rendering):
    """An answer as a message, or as its events."""

    @property
    def _has_text(self) -> bool:
        return bool(self.answer.reply.text) or not self.answer.reply.tool_calls

    def _tool_uses(self) -> list[dict[str, Any]]:
        return [
            {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
            for call_id, name, arguments in self.answer.calls("toolu_")
        ]

    def _message(self, content: Sequence[Any], stop_reason: str | None, output_tokens: int) -> dict[str, Any]:
        answer = self.answer
        return {
            "id": f"msg_{answer.digest}",
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": list(content),
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": answer.input_tokens, "output_tokens": output_tokens},
        }

    def whole(self) -> Any:
        """See `Rendering`."""
        text = self.answer.reply.text
        content = [{"type": "text", "text": text}] if text else []
        stop_reason = _STOP_REASONS[self.answer.finish]
        return self._message([*content, *self._tool_uses()], stop_reason, self.answer.output_tokens)

    def opening(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = [_event("message_start", message=self._message([], None, 0))]
        if self._has_text:
            parts.append(_event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
        return parts

    def text(self, piece: str) -> bytes:
        """See `Rendering`."""
        return _event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})

    def calls(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = [_event("content_block_stop", index=0)] if self._has_text else []
        for index, block in enumerate(self._tool_uses(), start=int(self._has_text)):
            parts.append(_event("content_block_start", index=index, content_block=block | {"input": {}}))
            for piece in pieces_of(json.dumps(block["input"])):
                delta = {"type": "input_json_delta", "partial_json": piece}
                parts.append(_event("content_block_delta", index=index, delta=delta))
            parts.append(_event("content_block_stop", index=index))
        return parts

    def closing(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = [] if self.answer.reply.tool_calls else [_event("content_block_stop", index=0)]
        delta = {"stop_reason": _STOP_REASONS[self.answer.finish], "stop_sequence": None}
        usage = {"output_tokens": self.answer.output_tokens}
        return (*parts, _event("message_delta", delta=delta, usage=usage), _event("message_stop"))


class AnthropicMessages(Dialect):
    """The dialect; see `Dialect`."""

    renders = MessageRendering

    sign_of_life = event({"type": "ping"}, "ping")

    def route(self, request: ServiceRequest) -> Route | None:
        """See `Dialect`."""
        path = request.path.rstrip("/")
        if path.endswith("/v1/messages"):
            return Route("generate")
        if path.endswith("/v1/messages/count_tokens"):
            return Route("count")
        return None

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect`. Tools that the provider runs itself, such as web search, are not offered to the model."""
        system = message_text({"content": payload.get("system")})
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        for message in objects_in(payload.get("messages"), "messages", needed=True):
            messages += _messages_of(message)
        choice = payload.get("tool_choice") or {}
        output = (payload.get("output_config") or {}).get("format") or payload.get("output_format") or {}
        return {
            "model": payload.get("model"),
            "messages": messages,
            "tools": [
                {"type": "function", "function": {"name": tool.get("name"), "parameters": tool["input_schema"]}}
                for tool in objects_in(payload.get("tools"), "tools")
                if isinstance(tool.get("input_schema"), dict)
            ],
            "tool_choice": _chat_choice(choice),
            "parallel_tool_calls": not choice.get("disable_parallel_tool_use"),
            "response_format": format_of(output.get("schema")),
            "stream": payload.get("stream"),
            "max_tokens": payload.get("max_tokens"),
        }

    def information(self, route: Route, model: str, tokens: int) -> Any:
        """See `Dialect`."""
        return {"input_tokens": tokens}

    def error(self, refusal: Refusal) -> Any:
        """See `Dialect`."""
        kind = _ERROR_TYPES.get(refusal.kind, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": str(refusal)}}


def _chat_choice(choice: Mapping[str, Any]) -> Any:
    if choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return {"any": "required", "none": "none"}.get(str(choice.get("type")))


def _messages_of(message: Mapping[str, Any]) -> list[Message]:
    """Return a message as those of a chat: the results of tools are messages of their own there."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"role": message.get("role"), "content": content}]
    blocks = objects_in(content, "messages")
    results = [
        {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": block.get("content") or ""}
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    calls = [
        called(block.get("id"), block.get("name"), block.get("input"))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    return messages_of_one(message.get("role"), text, calls, results)


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)
