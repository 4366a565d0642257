"""DashScope's own interface, by which Alibaba's Qwen models are asked beside OpenAI's paths.

POST …/services/aigc/text-generation/generation    …/services/embeddings/text-embedding/text-embedding
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from docmind_lab.services.dialects.exchange import (
    EVENT_STREAM,
    Answer,
    Dialect,
    EmbeddingRequest,
    Refusal,
    Route,
    compact,
    event,
    objects_in,
    size_in,
    texts_in,
)
from docmind_lab.services.plan import ServiceRequest

_PATH: Final = re.compile(r"(/api)?/v1/services/(?P<what>aigc/text-generation/generation|embeddings/text-embedding/.+)")
_STREAMED: Final = "x-dashscope-sse"


class DashScope(Dialect):
    """The dialect; see `Dialect`."""

    sign_of_life = b":\n\n"

    def route(self, request: ServiceRequest) -> Route | None:
        """See `Dialect`."""
        path = _PATH.fullmatch(request.path.rstrip("/"))
        if path is None:
            return None
        if path["what"].startswith("embeddings"):
            return Route("embed")
        is_stream = request.headers.get(_STREAMED) == "enable"
        return Route("generate", variant="stream" if is_stream else "whole")

    def chat(self, route: Route, payload: Mapping[str, Any]) -> dict[str, Any]:
        """See `Dialect`."""
        given, options = _object(payload, "input"), _parameters(payload)
        asked = given.get("messages") or [{"role": "user", "content": given.get("prompt") or ""}]
        messages = objects_in(asked, "input.messages", needed=True)
        passed = ("tools", "tool_choice", "response_format", "max_tokens", "parallel_tool_calls")
        options = {name: options[name] for name in passed if options.get(name) is not None}
        return {"model": payload.get("model"), "messages": messages, "stream": route.variant == "stream", **options}

    def rendering(self, answer: Answer) -> DashScopeRendering:
        """See `Dialect`."""
        return DashScopeRendering(answer)

    def embedding_request(self, route: Route, payload: Mapping[str, Any]) -> EmbeddingRequest:
        """See `Dialect`."""
        texts = texts_in(_object(payload, "input").get("texts"), "input.texts")
        size = size_in(_parameters(payload).get("dimension"), "parameters.dimension")
        return EmbeddingRequest(texts, str(payload.get("model") or ""), size)

    def embeddings(
        self, route: Route, payload: Mapping[str, Any], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Any:
        """See `Dialect`."""
        found = [{"text_index": place, "embedding": list(vector)} for place, vector in enumerate(vectors)]
        return {"output": {"embeddings": found}, "usage": {"total_tokens": tokens}, "request_id": "embedding"}

    def error(self, refusal: Refusal) -> Any:
        """See `Dialect`."""
        codes = {400: "InvalidParameter", 404: "ModelNotFound", 429: "Throttling.RateQuota"}
        return {"code": codes.get(refusal.status, "InternalError"), "message": str(refusal), "request_id": "error"}


def _object(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = payload.get(name)
    if not isinstance(found, Mapping):
        raise Refusal(400, f"'{name}' must be an object.", param=name)
    return found


def _parameters(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object({"parameters": {}, **payload}, "parameters")


@dataclass(frozen=True)
class DashScopeRendering:
    """An answer as one JSON object, or as events, each with the text so far or, if asked for, with what is new."""

    answer: Answer
    said: list[str] = field(default_factory=list)
    content_type = EVENT_STREAM

    def _made(self, text: str, calls: Sequence[Any] = (), *, finish: str = "null") -> dict[str, Any]:
        answer = self.answer
        made = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
        usage = made | {"total_tokens": answer.input_tokens + answer.output_tokens}
        message = {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})
        if _parameters(answer.payload).get("result_format") == "message" or calls:
            output: dict[str, Any] = {"choices": [{"finish_reason": finish, "message": message}]}
        else:
            output = {"text": text, "finish_reason": finish}
        return {"output": output, "usage": usage, "request_id": answer.digest[:32]}

    def _calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": name_of,
                "type": "function",
                "index": place,
                "function": {"name": name, "arguments": compact(values)},
            }
            for place, (name_of, name, values) in enumerate(self.answer.calls())
        ]

    def _so_far(self, piece: str) -> str:
        self.said.append(piece)
        return piece if _parameters(self.answer.payload).get("incremental_output") else "".join(self.said)

    def whole(self) -> Any:
        """See `Rendering`."""
        return self._made(self.answer.reply.text, self._calls(), finish=self.answer.finish)

    def opening(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return ()

    def text(self, piece: str) -> bytes:
        """See `Rendering`."""
        return event(self._made(self._so_far(piece)), "result")

    def calls(self) -> Sequence[bytes]:
        """See `Rendering`."""
        return (event(self._made("", self._calls(), finish=self.answer.finish), "result"),)

    def closing(self) -> Sequence[bytes]:
        """See `Rendering`."""
        if self.answer.reply.tool_calls:
            return ()
        return (event(self._made(self._so_far(""), finish=self.answer.finish), "result"),)
