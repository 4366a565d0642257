"""OpenAI's chat completions and embeddings, which most servers and gateways speak too.

    POST …/chat/completions    POST …/embeddings    GET …/models    GET …/models/NAME

Before the path may stand any prefix, such as /v1, OpenRouter's /api/v1, or Azure's /openai/deployments/NAME.
"""

from __future__ import annotations

import array
import base64
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.services.dialects.dialect_exchange import (
    CREATED,
    Dialect,
    EmbeddingRequest,
    Refusal,
    Rendering,
    Route,
    event,
    objects_in,
    size_in,
    texts_in,
)
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.services.scripted_model.tokens import pieces_of

_DEPLOYMENT = re.compile(r"/deployments/(?P<name>[^/]+)/")
_MODELS = re.compile(r"(^|/)models(/(?P<name>[^:]+))?$")
_ERROR_TYPES = {"rate_limit": "requests", "server": "server_error", "unavailable": "server_error"}


class OpenAIErrors(Dialect):
    """Errors in OpenAI's shape."""

    def error(self, refusal: Refusal) -> Any:
        """See `Dialect`."""
        kind = _ERROR_TYPES.get(refusal.kind, "invalid_request_error")
        return {"error": {"message": str(refusal), "type": kind, "param": refusal.param, "code": refusal.code}}


class ChatRendering(Rendering):
    """An answer as a chat completion, or as its chunks."""

    @property
    def _id(self) -> str:
        return f"chatcmpl-{self.answer.digest}"

    @property
    def _usage(self) -> dict[str, int]:
        answer = self.answer
        return {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        }

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, name, arguments in self.answer.calls()
        ]

    def whole(self) -> Any:
        """See `Rendering`."""
        reply = self.answer.reply
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.tool_calls:
            message |= {"content": reply.text or None, "tool_calls": self._tool_calls()}
        return {
            "id": self._id,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.answer.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.answer.finish, "logprobs": None}],
            "usage": self._usage,
            # Clients that check a response, such as OpenRouter's, insist on the key.
            "system_fingerprint": None,
        }

    def opening(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return (self._event({"role": "assistant", "content": ""}),)

    def text(self, piece: str) -> bytes:
        """See `Rendering`."""
        return self._event({"content": piece})

    def calls(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = []
        for index, call in enumerate(self._tool_calls()):
            function = call["function"]
            begun = {"index": index, **call, "function": function | {"arguments": ""}}
            further = ({"index": index, "function": {"arguments": piece}} for piece in pieces_of(function["arguments"]))
            parts += [self._event({"tool_calls": [part]}) for part in (begun, *further)]
        return parts

    def closing(self) -> Sequence[bytes]:
        """See `Rendering`."""
        parts = [self._event({}, self.answer.finish)]
        if (self.answer.payload.get("stream_options") or {}).get("include_usage"):
            parts.append(self._event(None))
        return (*parts, b"data: [DONE]\n\n")

    def _event(self, delta: Mapping[str, Any] | None, finish_reason: str | None = None) -> bytes:
        payload: dict[str, Any] = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.answer.model,
            "choices": [],
            "system_fingerprint": None,
        }
        if delta is None:
            payload["usage"] = self._usage
        else:
            payload["choices"] = [{"index": 0, "delta": dict(delta), "finish_reason": finish_reason}]
        return event(payload)


class OpenAIChat(OpenAIErrors):
    """The dialect; see `Dialect`."""

    renders = ChatRendering

    def route(self, request: ServiceRequest) -> Route | None:
        """See `Dialect`."""
        path = request.path.rstrip("/")
        deployment = _DEPLOYMENT.search(path)
        model = deployment["name"] if deployment else ""
        if path.endswith("/chat/completions"):
            return Route("generate", model=model)
        if path.endswith("/embeddings"):
            return Route("embed", model=model)
        models = _MODELS.search(path)
        if models is None:
            return None
        return Route("model" if models["name"] else "models", "GET", models["name"] or "")

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect`."""
        objects_in(payload.get("messages"), "messages", needed=True)
        return dict(payload)

    def embedding_request(self, route: Route, payload: Mapping[str, Any]) -> EmbeddingRequest:
        """See `Dialect`."""
        if payload.get("encoding_format") not in (None, "float", "base64"):
            raise Refusal(400, "'encoding_format' must be 'float' or 'base64'.", param="encoding_format")
        texts = texts_in(payload.get("input"), "input")
        model = payload.get("model") or route.model
        return EmbeddingRequest(texts, str(model or ""), size_in(payload.get("dimensions"), "dimensions"))

    def embeddings(
        self, route: Route, payload: Mapping[str, Any], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Any:
        """See `Dialect`. The official client asks for base64 by itself, and decodes it."""
        is_packed = payload.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": packed(vector) if is_packed else list(vector)}
            for index, vector in enumerate(vectors)
        ]
        model = str(payload.get("model") or route.model)
        return {
            "object": "list",
            "data": data,
            "model": model,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def information(self, route: Route, model: str, tokens: int) -> Any:
        """See `Dialect`."""
        entry = {"id": route.model or model, "object": "model", "created": CREATED, "owned_by": "docmind_lab"}
        return entry if route.operation == "model" else {"object": "list", "data": [entry]}


def packed(vector: Sequence[float]) -> str:
    """Return a vector as base64 of 32-bit floats, the first byte the lowest."""
    floats = array.array("f", vector)
    if sys.byteorder == "big":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()
