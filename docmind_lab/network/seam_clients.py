"""HTTP clients for the openai, qdrant and A2A libraries, all through the seam.

An async client belongs to the event loop it was first used on; keep one `HttpClients` for one long-lived loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
import httpx2

from docmind_lab.core.addresses import hide_credentials_in_logs
from docmind_lab.network.exchange import Admission, admit_all
from docmind_lab.network.transports import (
    MAX_CONNECTIONS,
    AsyncHttpx2Transport,
    AsyncHttpxTransport,
    Httpx2Transport,
    HttpxTransport,
)

if TYPE_CHECKING:
    from qdrant_client import AsyncQdrantClient, QdrantClient

# qdrant-client rounds a timeout up to whole seconds, so its own can only be a backstop; the seam holds the budget.
_QDRANT_BACKSTOP_S = 60
_OF_QDRANT: Final[dict[str, Any]] = {"prefer_grpc": False, "check_compatibility": False, "trust_env": False}


@dataclass
class HttpClients:
    """The HTTP clients of one process.

    admit: called with every URL, raises for one that may not be reached. max_connections: of each pool.
    Clients ignore proxy settings of the environment: what is measured goes straight to the endpoint.
    """

    admit: Admission = admit_all
    max_connections: int = MAX_CONNECTIONS
    openai: httpx2.Client = field(init=False)
    openai_async: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        hide_credentials_in_logs()
        # follow_redirects stays on, as the openai client has it: every hop passes `admit` again.
        options: dict[str, Any] = {"trust_env": False, "follow_redirects": True, "timeout": None}
        self.openai = httpx2.Client(transport=Httpx2Transport(**self._pool), **options)
        self.openai_async = httpx2.AsyncClient(transport=AsyncHttpx2Transport(**self._pool), **options)

    @property
    def _pool(self) -> dict[str, Any]:
        return {"admit": self.admit, "max_connections": self.max_connections}

    def qdrant(self, url: str, timeout_s: int = _QDRANT_BACKSTOP_S) -> QdrantClient:
        """Return a Qdrant client over REST at `url`. It rounds timeouts to seconds; the seam enforces deadlines."""
        # Function-level: it takes longer to import than all else, and the model server needs none.
        from qdrant_client import QdrantClient  # noqa: PLC0415

        return QdrantClient(url=url, timeout=timeout_s, transport=HttpxTransport(**self._pool), **_OF_QDRANT)

    def qdrant_async(self, url: str, timeout_s: int = _QDRANT_BACKSTOP_S) -> AsyncQdrantClient:
        """Return an async Qdrant client over REST at `url`, otherwise as `qdrant`."""
        from qdrant_client import AsyncQdrantClient  # noqa: PLC0415 - as above

        return AsyncQdrantClient(url=url, timeout=timeout_s, transport=AsyncHttpxTransport(**self._pool), **_OF_QDRANT)

    def a2a(self) -> httpx.AsyncClient:
        """Return a new client for peer agents; the caller closes it, on the event loop that used it."""
        return httpx.AsyncClient(transport=AsyncHttpxTransport(**self._pool), trust_env=False, timeout=None)

    def close(self) -> None:
        """Close the blocking clients."""
        self.openai.close()

    async def aclose(self) -> None:
        """Close the async clients, on the event loop that used them."""
        await self.openai_async.aclose()
