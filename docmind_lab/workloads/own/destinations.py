"""Where the requests of a user's graph go: to simulated services, or where the graph's own code sends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from docmind_lab.core.addresses import displayed
from docmind_lab.core.errors import NotSimulated
from docmind_lab.network.attempts import CallKind

Services = Literal["simulated", "own"]

_MODEL_PATHS = ("/chat/completions", "/completions", "/responses", "/messages")
_STORE_PATHS = ("/collections", "/points", "/embeddings")
_QDRANT_PORT = 6333

REMEDY = 'use the wall clock with the graph\'s own services: clock="wall", services="own" (--clock wall --services own)'


def kind_of(url: str) -> CallKind:
    """What a request is for, by its path."""
    path = urlsplit(url).path.rstrip("/")
    if path.endswith(_MODEL_PATHS):
        return "llm"
    return "retrieval" if any(part in path for part in _STORE_PATHS) else "tool"


@dataclass(frozen=True)
class SimulatedDestinations:
    """Requests go to simulated services, whichever host they name: models to the one, vector stores to the other."""

    openai_base_url: str
    qdrant_url: str

    def of(self, method: str, url: str) -> str:
        """The URL that takes the place of a request's own. Raises: NotSimulated for what neither service knows."""
        parts = urlsplit(url)
        path = parts.path.rstrip("/")
        if path.endswith("/chat/completions"):
            return f"{self.openai_base_url.rstrip('/')}/chat/completions"
        if path.endswith("/models"):
            return f"{self.openai_base_url.rstrip('/')}/models"
        before, found, rest = path.partition("/collections")
        query = f"?{parts.query}" if parts.query else ""
        if found and not before:
            return f"{self.qdrant_url.rstrip('/')}/collections{rest}{query}"
        if not path and parts.port == _QDRANT_PORT:
            return f"{self.qdrant_url.rstrip('/')}/"
        raise NotSimulated(f"{method} {displayed(url)}: no simulated service answers this")


@dataclass(frozen=True)
class Own:
    """Requests go where the graph's code sends them."""

    def of(self, method: str, url: str) -> None:
        """None: the request's own URL."""


Destinations = SimulatedDestinations | Own
