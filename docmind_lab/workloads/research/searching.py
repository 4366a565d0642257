"""Search one source: one recorded retrieval call, limited by the deadline in the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qdrant_client import AsyncQdrantClient, QdrantClient

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.graphs.node_modes import CALL_SYNC, NodeMode
from docmind_lab.docmind.retrieval.results import record_retrieved
from docmind_lab.docmind.retrieval.tool import ROLE, bounded_search
from docmind_lab.docmind.sync_async import Operation
from docmind_lab.workloads.research.sources import Item, Source, items_of


@dataclass(frozen=True)
class SourceSearch:
    """Searches sources with a sync or an async client. mode: of the async side, see `graphs/node_modes.py`."""

    client: QdrantClient
    async_client: AsyncQdrantClient | None
    mode: NodeMode = "own"

    def search(self, source: Source, query: str, hypothesis: str, state: Mapping[str, Any]) -> Operation:
        """Return an operation that searches the source; a query without a word finds nothing and sends nothing.

        state: its deadline, and its place in the run. Waited for, it raises BudgetRefused, DeadlineExceeded, and one
        of `SEARCH_FAILURES` as the client raises it.
        """
        arguments = source.request(query)
        name = source.spec.name

        def blocking() -> tuple[Item, ...]:
            if arguments is None:
                return ()
            with bounded_search(state):
                response = self.client.query_points(**arguments)
            return _record(items_of(response.points, name, hypothesis), name)

        async def awaited() -> tuple[Item, ...]:
            if arguments is None:
                return ()
            if self.async_client is None:
                raise ConfigurationError("an async run needs an async client: leave database.qdrant_path out")
            with bounded_search(state):
                response = await self.async_client.query_points(**arguments)
            return _record(items_of(response.points, name, hypothesis), name)

        in_name_only = CALL_SYNC.get(self.mode)
        return Operation(blocking, awaited if in_name_only is None else lambda: in_name_only(blocking))


def _record(items: tuple[Item, ...], source: str) -> tuple[Item, ...]:
    record_retrieved(ROLE, [item.key for item in items], [item.topic for item in items if item.topic], source)
    return items
