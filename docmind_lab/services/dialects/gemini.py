"""Google's Gemini: …/models/NAME:generateContent and its kin, as JSON and as events.

POST …/models/NAME:generateContent    :streamGenerateContent    :embedContent    :batchEmbedContents    :countTokens
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from docmind_lab.services.dialects.dialect_exchange import (
    Dialect,
    EmbeddingRequest,
    Message,
    Operation,
    Refusal,
    Rendering,
    Route,
    called,
    event,
    format_of,
    messages_of_one,
    objects_in,
    size_in,
)
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.services.scripted_model.conversation import message_text

_METHOD = re.compile(r"/(?P<name>[^/]+):(?P<method>[A-Za-z]+)$")
_OPERATIONS: Mapping[str, Operation] = {
    "generateContent": "generate",
    "streamGenerateContent": "generate",
    "embedContent": "embed",
    "batchEmbedContents": "embed",
    "countTokens": "count",
}
STREAM: Final = "streamGenerateContent"
_STATUS = {
    "not_found": "NOT_FOUND",
    "rate_limit": "RESOURCE_EXHAUSTED",
    "server": "INTERNAL",
    "unavailable": "UNAVAILABLE",
}


class GeminiRendering(Rendering):
    """An answer as a response with one candidate, or as several that add up to it."""

    def _response(self, parts: Sequence[Any], *, is_last: bool = True) -> dict[str, Any]:
        answer = self.answer
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
        if is_last:
            candidate["finishReason"] = "MAX_TOKENS" if answer.finish == "length" else "STOP"
        body: dict[str, Any] = {"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.digest}
        if is_last:
            body["usageMetadata"] = {
                "promptTokenCount": answer.input_tokens,
                "candidatesTokenCount": answer.output_tokens,
                "totalTokenCount": answer.input_tokens + answer.output_tokens,
            }
        return body

    def _call_parts(self) -> list[dict[str, Any]]:
        return [
            {"functionCall": {"id": call_id, "name": name, "args": arguments}}
            for call_id, name, arguments in self.answer.calls()
        ]

    def whole(self) -> Any:
        """See `Rendering`."""
        text = self.answer.reply.text
        return self._response([*([{"text": text}] if text else []), *self._call_parts()])

    def text(self, piece: str) -> bytes:
        """See `Rendering`."""
        return event(self._response([{"text": piece}], is_last=False))

    def calls(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return (event(self._response(self._call_parts(), is_last=False)),)

    def closing(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return (event(self._response([{"text": ""}])),)


class Gemini(Dialect):
    """The dialect; see `Dialect`."""

    renders = GeminiRendering

    # The official client reads a comment as a part of the answer.
    sign_of_life = b"\n"

    def route(self, request: ServiceRequest) -> Route | None:
        """See `Dialect`. A stream is one of events, as the official client asks for it."""
        method = _METHOD.search(request.path)
        if method is None or method["method"] not in _OPERATIONS:
            return None
        return Route(_OPERATIONS[method["method"]], model=method["name"], variant=method["method"])

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect`."""
        system = _text_of(_either(payload, "systemInstruction") or {})
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        for content in objects_in(payload.get("contents"), "contents", needed=True):
            messages += _messages_of(content)
        config = _either(payload, "generationConfig") or {}
        schema = _either(config, "responseJsonSchema") or _either(config, "responseSchema")
        is_json = _either(config, "responseMimeType") == "application/json"
        calling = _either(_either(payload, "toolConfig") or {}, "functionCallingConfig") or {}
        allowed = _either(calling, "allowedFunctionNames") or ()
        tools = [
            {"type": "function", "function": {"name": each.get("name"), "parameters": _parameters_of(each)}}
            for tool in objects_in(payload.get("tools"), "tools")
            for each in objects_in(_either(tool, "functionDeclarations"), "tools")
            if not allowed or each.get("name") in allowed
        ]
        return {
            "model": route.model,
            "messages": messages,
            "tools": tools,
            "tool_choice": {"ANY": "required", "NONE": "none"}.get(str(calling.get("mode", "")).upper()),
            "response_format": format_of(json_schema_of(schema), is_json=is_json),
            "stream": route.variant == STREAM,
            "max_tokens": _either(config, "maxOutputTokens"),
        }

    def embedding_request(self, route: Route, payload: Mapping[str, Any]) -> EmbeddingRequest:
        """See `Dialect`."""
        requests = [payload] if route.variant == "embedContent" else objects_in(payload.get("requests"), "requests")
        texts = [_text_of(each.get("content") or {}) for each in requests]
        if not texts:
            raise Refusal(400, "'requests' must be a non-empty array of objects.", param="requests")
        size = _either(requests[0], "outputDimensionality")
        return EmbeddingRequest(tuple(texts), route.model, size_in(size, "outputDimensionality"))

    def embeddings(
        self, route: Route, payload: Mapping[str, Any], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Any:
        """See `Dialect`."""
        embeddings = [{"values": list(vector)} for vector in vectors]
        return {"embedding": embeddings[0]} if route.variant == "embedContent" else {"embeddings": embeddings}

    def information(self, route: Route, model: str, tokens: int) -> Any:
        """See `Dialect`."""
        return {"totalTokens": tokens}

    def error(self, refusal: Refusal) -> Any:
        """See `Dialect`."""
        status = _STATUS.get(refusal.kind, "INVALID_ARGUMENT")
        return {"error": {"code": refusal.status, "message": str(refusal), "status": status}}


def _either(values: Mapping[str, Any], name: str) -> Any:
    """Return a field by its JSON name, or by the name that it has in the protocol, which is taken too."""
    snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return values[name] if name in values else values.get(snake)


def _parameters_of(declaration: Mapping[str, Any]) -> dict[str, Any]:
    schema = _either(declaration, "parametersJsonSchema") or declaration.get("parameters") or {}
    return dict(json_schema_of(schema))


def json_schema_of(schema: Any) -> Any:
    """Return Gemini's schema as a JSON schema: its types are in capitals, and counts may be texts."""
    if isinstance(schema, list):
        return [json_schema_of(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    counts = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            result[key] = value.lower()
        elif key in counts and isinstance(value, str) and value.isdigit():
            result[key] = int(value)
        else:
            result[key] = json_schema_of(value)
    return result


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return message_text({"content": content.get("parts")}) if isinstance(content, dict) else ""


def _messages_of(content: Mapping[str, Any]) -> list[Message]:
    """Return a content as messages of a chat: the responses of functions are messages of their own there."""
    parts = objects_in(content.get("parts"), "contents")
    calls, results = [], []
    for part in parts:
        call, response = _either(part, "functionCall"), _either(part, "functionResponse")
        if isinstance(call, dict):
            calls.append(called(call.get("id") or call.get("name"), call.get("name"), call.get("args")))
        if isinstance(response, dict):
            call_id = response.get("id") or response.get("name")
            result: Message = {"role": "tool", "tool_call_id": call_id, "content": _result_text(response)}
            results.append(result)
    role = "assistant" if content.get("role") == "model" else "user"
    return messages_of_one(role, _text_of(content), calls, results)


def _result_text(response: Mapping[str, Any]) -> str:
    """Return what a function returned: a text under the only key, or all of it as JSON."""
    value = response.get("response")
    only = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    return only if isinstance(only, str) else json.dumps(value)
