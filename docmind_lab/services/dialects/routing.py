"""Which dialect a request speaks, judged by its method and path, and for a stranger's host by the host too."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from docmind_lab.services.dialects.anthropic_messages import AnthropicMessages
from docmind_lab.services.dialects.dialect_exchange import Dialect, Refusal, Route
from docmind_lab.services.dialects.gemini import Gemini
from docmind_lab.services.dialects.ollama import PATHS, Ollama
from docmind_lab.services.dialects.openai_chat import OpenAIChat
from docmind_lab.services.dialects.openai_responses import OpenAIResponses
from docmind_lab.services.plan import ServiceRequest

_OLLAMA_PORT: Final = 11434
# Services that speak to no model have such paths too, under their own names.
_MODEL_HOSTS: Final = ("openai", "anthropic", "googleapis", "azure", "localhost", "127.0.0.1")


class Dialects:
    """All dialects of one service; a dialect remembers what its clients may refer to."""

    def __init__(self) -> None:
        self._chat = OpenAIChat()
        # The narrower path is judged first.
        narrower = (AnthropicMessages(), OpenAIResponses(), Gemini(), Ollama())
        self._all: tuple[Dialect, ...] = (*narrower, self._chat)

    def find(self, request: ServiceRequest) -> tuple[Dialect, Route]:
        """Return the dialect of a request and what it asks for; of a path that none has, OpenAI's, and "unknown"."""
        routes = ((dialect, dialect.route(request)) for dialect in self._all)
        return next(((dialect, route) for dialect, route in routes if route), (self._chat, Route("unknown")))

    @staticmethod
    def check(request: ServiceRequest, route: Route) -> None:
        """Check that a path is served, and by this method. Raises: Refusal."""
        if route.operation == "unknown":
            message = f"Unknown request URL: {request.method} {request.path}."
            raise Refusal(404, message, "not_found", code="unknown_url")
        if request.method != route.method:
            message = f"Method {request.method} is not allowed here; use {route.method}."
            raise Refusal(405, message, "method")


_JUDGE: Final = Dialects()


def asks_a_model(path: str) -> bool:
    """Whether a path of the services' own address is the model server's."""
    return path.startswith("/v1/") or _JUDGE.find(ServiceRequest("", path))[1].operation != "unknown"


def is_answered(method: str, url: str) -> Route | None:
    """Return what a request to any host asks of a model; None for one that asks nothing of a model.

    Ollama's paths are those of many services: they count on its port, and on hosts of its name. A list of models
    counts wherever OpenAI's would be.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    host = (parts.hostname or "").lower()
    if path in PATHS and parts.port != _OLLAMA_PORT and "ollama" not in host:
        return None
    route = _JUDGE.find(ServiceRequest(method, path, query=parts.query))[1]
    if route.operation == "unknown" or route.method != method:
        return None
    if route.operation == "model" and not any(name in host for name in _MODEL_HOSTS):
        return None
    return route
