"""A system that reaches a model and a vector store over HTTP clients of its own."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Final

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.errors import DocmindLabError, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.network import HttpClients
from docmind_lab.network.live_endpoints import reason_of
from docmind_lab.services.server import ServiceAddresses

BATCH_SIZE: Final = 64
"""Points per upload: about 200 kB of JSON, well below Qdrant's limit of 32 MB for a request."""


def _vector_store_error(error: ApiException, url: str) -> DocmindLabError:
    """Convert an error of building the index to one that names the vector store and the remedy."""
    remedy = "start Qdrant, or set DOCMIND_DATABASE__QDRANT_URL to where it is"
    if isinstance(error, UnexpectedResponse):
        return ServiceError(f"vector store at {redact_url(url)} answered HTTP {error.status_code}; {remedy}")
    source = getattr(error, "source", error)
    if isinstance(source, DocmindLabError):
        return source
    return ServiceError(f"vector store at {redact_url(url)} cannot be reached ({reason_of(source)}); {remedy}")


class ServiceSystem:
    """A system that reaches a model and a vector store over HTTP clients of its own."""

    addresses: ServiceAddresses
    settings: Settings
    http: HttpClients
    qdrant: QdrantClient
    qdrant_async: AsyncQdrantClient

    def _connect(self) -> None:
        """Make the clients of the vector store."""
        # qdrant-client takes whole seconds only; the seam holds the deadline to the millisecond.
        backstop_s, url = math.ceil(self.settings.database.qdrant_timeout), self.addresses.qdrant_url
        self.qdrant, self.qdrant_async = self.http.qdrant(url, backstop_s), self.http.qdrant_async(url, backstop_s)

    @contextlib.contextmanager
    def _built(self) -> Iterator[None]:
        """Close the clients if the block, which fills the vector store, fails. Raises: an error with the remedy."""
        with contextlib.ExitStack() as unless_built:
            unless_built.callback(self.close)
            try:
                yield
            except ApiException as error:
                raise _vector_store_error(error, self.addresses.qdrant_url) from error
            unless_built.pop_all()

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.qdrant.close()
        self.http.close()
        shared_loop().run(self._close_async())

    async def _close_async(self) -> None:
        await self.qdrant_async.close()
        await self.http.aclose()
