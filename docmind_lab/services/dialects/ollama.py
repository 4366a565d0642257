"""Ollama's own interface, whose streams are lines of JSON.

POST /api/chat    /api/generate    /api/embed    /api/show
GET  /api/tags
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from docmind_lab.services.dialects.dialect_exchange import (
    JSON_LINES,
    Dialect,
    EmbeddingRequest,
    Refusal,
    Rendering,
    Route,
    called,
    compact,
    format_of,
    objects_in,
    size_in,
    texts_in,
)
from docmind_lab.services.plan import ServiceRequest

PATHS: Final[Mapping[str, Route]] = {
    "/api/chat": Route("generate", variant="chat"),
    "/api/generate": Route("generate", variant="generate"),
    "/api/embed": Route("embed"),
    "/api/show": Route("describe"),
    "/api/tags": Route("models", "GET"),
}
_MADE_AT = "1970-01-01T00:00:00Z"
_DETAILS = {
    "parent_model": "",
    "format": "",
    "family": "docmind",
    "families": ["docmind"],
    "parameter_size": "",
    "quantization_level": "",
}


class OllamaRendering(Rendering):
    """An answer as one JSON object, or as lines of them; the last one says how long everything took."""

    content_type = JSON_LINES

    def _part(self, text: str, calls: Sequence[Any] = (), *, is_last: bool = False) -> dict[str, Any]:
        answer = self.answer
        body: dict[str, Any] = {"model": answer.model, "created_at": _MADE_AT}
        if answer.route.variant == "generate":
            body["response"] = text
        else:
            body["message"] = {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})
        body["done"] = is_last
        if is_last:
            first_ns = round(answer.latency.first_token_s * 1e9)
            rest_ns = round(answer.latency.inter_token_s * answer.output_tokens * 1e9)
            body |= {
                "done_reason": "length" if answer.finish == "length" else "stop",
                "total_duration": first_ns + rest_ns,
                "load_duration": 0,
                "prompt_eval_count": answer.input_tokens,
                "prompt_eval_duration": first_ns,
                "eval_count": answer.output_tokens,
                "eval_duration": rest_ns,
            }
        return body

    def _calls(self) -> list[dict[str, Any]]:
        return [{"function": {"name": name, "arguments": values}} for _, name, values in self.answer.calls()]

    def whole(self) -> Any:
        """See `Rendering`."""
        return self._part(self.answer.reply.text, self._calls(), is_last=True)

    def text(self, piece: str) -> bytes:
        """See `Rendering`."""
        return _line(self._part(piece))

    def calls(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return (_line(self._part("", self._calls())),)

    def closing(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return (_line(self._part("", is_last=True)),)


class Ollama(Dialect):
    """The dialect; see `Dialect`."""

    renders = OllamaRendering

    def route(self, request: ServiceRequest) -> Route | None:
        """See `Dialect`."""
        return PATHS.get(request.path.rstrip("/"))

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect`. An answer is streamed unless the request says that it is not to be."""
        shape = payload.get("format")
        limit = (payload.get("options") or {}).get("num_predict")
        return {
            "model": payload.get("model"),
            "messages": _messages(route, payload),
            "tools": payload.get("tools"),
            "response_format": format_of(shape if isinstance(shape, dict) else None, is_json=bool(shape)),
            "stream": payload.get("stream") is not False,
            # 0 and below: no limit.
            "max_tokens": limit if isinstance(limit, int) and limit > 0 else None,
        }

    def embedding_request(self, route: Route, payload: Mapping[str, Any]) -> EmbeddingRequest:
        """See `Dialect`."""
        size = size_in(payload.get("dimensions"), "dimensions")
        return EmbeddingRequest(texts_in(payload.get("input"), "input"), str(payload.get("model") or ""), size)

    def embeddings(
        self, route: Route, payload: Mapping[str, Any], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Any:
        """See `Dialect`."""
        model, embeddings = payload.get("model"), [list(vector) for vector in vectors]
        return {
            "model": model,
            "embeddings": embeddings,
            "total_duration": 0,
            "load_duration": 0,
            "prompt_eval_count": tokens,
        }

    def information(self, route: Route, model: str, tokens: int) -> Any:
        """See `Dialect`."""
        capabilities = ["completion", "tools", "embedding"]
        if route.operation == "describe":
            about = {"modelfile": "", "parameters": "", "template": "", "details": _DETAILS}
            return about | {"model_info": {"docmind.context_length": 131_072}, "capabilities": capabilities}
        entry = {"name": model, "model": model, "size": 0, "digest": "", "details": _DETAILS, "modified_at": _MADE_AT}
        return {"models": [entry]}

    def error(self, refusal: Refusal) -> Any:
        """See `Dialect`."""
        return {"error": str(refusal)}


def _messages(route: Route, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    if route.variant == "generate":
        system = payload.get("system")
        before = [{"role": "system", "content": system}] if system else []
        return [*before, {"role": "user", "content": payload.get("prompt") or ""}]
    messages = []
    for message in objects_in(payload.get("messages"), "messages", needed=True):
        calls = [
            called(function.get("name"), function.get("name"), function.get("arguments"))
            for call in objects_in(message.get("tool_calls"), "messages")
            if isinstance(function := call.get("function"), dict)
        ]
        fields = {key: value for key, value in message.items() if key in ("role", "content", "name")}
        if calls:
            fields["tool_calls"] = calls
        if message.get("role") == "tool":
            fields["tool_call_id"] = message.get("tool_name") or message.get("tool_call_id")
        messages.append(fields)
    return messages


def _line(payload: Any) -> bytes:
    return compact(payload).encode() + b"\n"
