"""OpenAI's Responses API: POST …/responses, as JSON and as events.

What a `previous_response_id` names is remembered while the service runs: the newest ten thousand responses are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from docmind_lab.services.dialects.dialect_exchange import (
    CREATED,
    Answer,
    Message,
    Refusal,
    Rendering,
    Route,
    called,
    event,
    format_of,
    objects_in,
)
from docmind_lab.services.dialects.openai_chat import OpenAIErrors
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.services.scripted_model.tokens import pieces_of

REMEMBERED_RESPONSES: Final = 10_000


@dataclass(frozen=True)
class ResponseRendering(Rendering):
    """An answer as a response, or as its events, which are numbered as they are made."""

    _numbers: Iterator[int] = field(default_factory=itertools.count, init=False)

    @property
    def id(self) -> str:
        """The response's id."""
        return f"resp_{self.answer.digest}"

    def items(self) -> list[dict[str, Any]]:
        """Return the items of the output: a message if there is a text or no call, and the calls."""
        calls = self._calls()
        return [self._message(self.answer.reply.text), *calls] if self._has_message else calls

    @property
    def _has_message(self) -> bool:
        return bool(self.answer.reply.text) or not self.answer.reply.tool_calls

    def _message(self, text: str | None) -> dict[str, Any]:
        """Return the message item. text: None for one that has only begun."""
        content = [] if text is None else [self._part(text)]
        status = "in_progress" if text is None else self._status
        return {
            "id": f"msg_{self.answer.digest}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    @staticmethod
    def _part(text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": f"fc_{call_id.removeprefix('call_')}",
                "type": "function_call",
                "call_id": call_id,
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for call_id, name, arguments in self.answer.calls()
        ]

    @property
    def _status(self) -> str:
        return "incomplete" if self.answer.finish == "length" else "completed"

    def _response(self, status: str, output: Sequence[Any]) -> dict[str, Any]:
        answer, request = self.answer, self.answer.payload
        response = {
            "id": self.id,
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": request.get("instructions"),
            "max_output_tokens": request.get("max_output_tokens"),
            "metadata": request.get("metadata") or {},
            "model": answer.model,
            "output": list(output),
            "parallel_tool_calls": request.get("parallel_tool_calls") is not False,
            "previous_response_id": request.get("previous_response_id"),
            "store": request.get("store") is not False,
            "temperature": request.get("temperature", 1.0),
            "text": request.get("text") or {"format": {"type": "text"}},
            "tool_choice": request.get("tool_choice") or "auto",
            "tools": request.get("tools") or [],
            "top_p": request.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": None,
        }
        if status in ("completed", "incomplete"):
            response["usage"] = {
                "input_tokens": answer.input_tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": answer.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": answer.input_tokens + answer.output_tokens,
            }
        return response

    def whole(self) -> Any:
        """See `Rendering`."""
        return self._response(self._status, self.items())

    def opening(self) -> Sequence[bytes]:
        """See `Rendering`."""
        begun = self._response("in_progress", ())
        parts = [self._event("created", response=begun), self._event("in_progress", response=begun)]
        if self._has_message:
            parts.append(self._event("output_item.added", output_index=0, item=self._message(None)))
            parts.append(self._event("content_part.added", **self._place, part=self._part("")))
        return parts

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self.answer.digest}", "output_index": 0, "content_index": 0}

    def text(self, piece: str) -> bytes:
        """See `Rendering`."""
        return self._event("output_text.delta", **self._place, delta=piece, logprobs=[])

    def _message_end(self) -> list[bytes]:
        text = self.answer.reply.text
        return [
            self._event("output_text.done", **self._place, text=text, logprobs=[]),
            self._event("content_part.done", **self._place, part=self._part(text)),
            self._event("output_item.done", output_index=0, item=self._message(text)),
        ]

    def calls(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = self._message_end() if self._has_message else []
        for index, item in enumerate(self._calls(), start=int(self._has_message)):
            place = {"item_id": item["id"], "output_index": index}
            begun = item | {"arguments": "", "status": "in_progress"}
            arguments, name = item["arguments"], item["name"]
            parts += [
                self._event("output_item.added", output_index=index, item=begun),
                *(self._event("function_call_arguments.delta", **place, delta=part) for part in pieces_of(arguments)),
                self._event("function_call_arguments.done", **place, arguments=arguments, name=name),
                self._event("output_item.done", output_index=index, item=item),
            ]
        return parts

    def closing(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = [] if self.answer.reply.tool_calls else self._message_end()
        return (*parts, self._event(self._status, response=self.whole()))

    def _event(self, kind: str, **fields: Any) -> bytes:
        name = f"response.{kind}"
        return event({"type": name, "sequence_number": next(self._numbers), **fields}, name)


class OpenAIResponses(OpenAIErrors):
    """The dialect; see `Dialect`."""

    renders = ResponseRendering

    def __init__(self) -> None:
        self._conversations: dict[str, list[Message]] = {}

    def route(self, request: ServiceRequest) -> Route | None:
        """See `Dialect`."""
        return Route("generate") if request.path.rstrip("/").endswith("/responses") else None

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect`. Tools that the provider runs itself, such as web search, are not offered to the model."""
        text_format = (payload.get("text") or {}).get("format") or {}
        instructions = payload.get("instructions")
        system = [{"role": "system", "content": instructions}] if isinstance(instructions, str) else []
        tools = objects_in(payload.get("tools"), "tools")
        chosen = payload.get("tool_choice")
        if isinstance(chosen, dict) and chosen.get("type") == "allowed_tools":
            names = {each.get("name") for each in objects_in(chosen.get("tools"), "tool_choice")}
            tools = [tool for tool in tools if tool.get("name") in names]
            chosen = chosen.get("mode")
        elif isinstance(chosen, dict):
            chosen = {"type": "function", "function": {"name": chosen.get("name")}}
        return {
            "model": payload.get("model"),
            "messages": [*system, *self._messages(payload)],
            "tools": [
                {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}
                for tool in tools
                if tool.get("type", "function") == "function"
            ],
            "tool_choice": chosen,
            "parallel_tool_calls": payload.get("parallel_tool_calls"),
            "response_format": format_of(text_format.get("schema"), is_json=text_format.get("type") == "json_object"),
            "stream": payload.get("stream"),
            "max_completion_tokens": payload.get("max_output_tokens"),
        }

    def _messages(self, payload: Mapping[str, Any]) -> list[Message]:
        before: list[Message] = []
        if previous := payload.get("previous_response_id"):
            if previous not in self._conversations:
                message = f"Previous response with id '{previous}' not found."
                raise Refusal(400, message, param="previous_response_id", code="previous_response_not_found")
            before = self._conversations[previous]
        items = payload.get("input")
        if isinstance(items, str):
            return [*before, {"role": "user", "content": items}]
        return [*before, *_messages_of(objects_in(items, "input", needed=True))]

    def rendering(self, answer: Answer) -> ResponseRendering:
        """See `Dialect`."""
        rendering = ResponseRendering(answer)
        self._conversations[rendering.id] = [
            *self._messages(answer.payload),
            *_messages_of([item for item in rendering.items() if item]),
        ]
        while len(self._conversations) > REMEMBERED_RESPONSES:
            del self._conversations[next(iter(self._conversations))]
        return rendering


def _messages_of(items: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return items as chat messages; those of no such kind, such as reasoning, are left out."""
    messages: list[Message] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
            if isinstance(item.get("name"), str):
                messages[-1]["name"] = item["name"]
        elif kind == "function_call":
            call = called(item.get("call_id"), item.get("name"), item.get("arguments"))
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
    if not messages:
        raise Refusal(400, "'input' must hold a message, or the output of a function call.", param="input")
    return messages
