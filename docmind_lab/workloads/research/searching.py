"""A search of one source: one recorded retrieval call, held to the deadline that the state carries.

Without a deadline the client's own timeout is the only limit of a search.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ApiException

from docmind_lab.core.deadlines import Deadline, current_policy, deadline_scope
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.graphs.node_modes import CALL_SYNC, NodeMode
from docmind_lab.docmind.sync_async import Operation
from docmind_lab.network.recorder import current_recorder, position_of
from docmind_lab.workloads.research.sources import Item, Source, items_of

ROLE = "retrieval"

SEARCH_FAILURES = (ApiException, httpx.HTTPError, TimeoutError)
"""What a search may fail with and the loop goes on after; a spent deadline is a TimeoutError too, caught before it."""


@dataclass(frozen=True)
class SourceSearch:
    """Both clients. mode: what an async run finds in place of the async client, see `graphs/node_modes.py`."""

    client: QdrantClient
    async_client: AsyncQdrantClient | None
    mode: NodeMode = "own"

    def search(self, source: Source, query: str, hypothesis: str, state: Mapping[str, Any]) -> Operation:
        """The source's items for a query; none, and no request, for a query without a word.

        state: its deadline, and its place in the run. Waited for, it raises BudgetRefused, DeadlineExceeded, and one
        of `SEARCH_FAILURES` as the client raises it.
        """
        arguments = source.request(query)
        name = source.spec.name

        def blocking() -> tuple[Item, ...]:
            if arguments is None:
                return ()
            with bounded(state):
                response = self.client.query_points(**arguments)
            return _noted(items_of(response.points, name, hypothesis), name)

        async def awaited() -> tuple[Item, ...]:
            if arguments is None:
                return ()
            if self.async_client is None:
                raise ConfigurationError("an async run needs an async client: leave database.qdrant_path out")
            with bounded(state):
                response = await self.async_client.query_points(**arguments)
            return _noted(items_of(response.points, name, hypothesis), name)

        in_name_only = CALL_SYNC.get(self.mode)
        return Operation(blocking, awaited if in_name_only is None else lambda: in_name_only(blocking))


@contextlib.contextmanager
def bounded(state: Mapping[str, Any]) -> Iterator[None]:
    """One retrieval call, recorded, under the deadline in the state if there is one."""
    recorder, policy, position = current_recorder(), current_policy(), position_of(state)
    deadline = Deadline.from_state(state)
    if deadline is not None:
        deadline = deadline.child(policy.reserve_s)
        if deadline.remaining() <= policy.floor_s:
            if recorder is not None:
                recorder.refuse("retrieval", ROLE, position)
            raise deadline.refused(ROLE, "retrieval")
    total = deadline if policy.cap == "total" else None
    with contextlib.ExitStack() as stack:
        if recorder is not None:
            call = stack.enter_context(
                recorder.call("retrieval", ROLE, position, cap_from_deadline=deadline is not None)
            )
            if deadline is not None and total is None:
                call.read_timeout_s = deadline.cap(None)
        stack.enter_context(deadline_scope(total))
        try:
            yield
        except SEARCH_FAILURES as error:
            if deadline is None or deadline.remaining() > policy.floor_s:
                raise
            if recorder is not None:
                recorder.event("deadline_cut", ROLE, kind="retrieval", source="network")
            raise deadline.exceeded(ROLE, "network") from error


def _noted(items: tuple[Item, ...], source: str) -> tuple[Item, ...]:
    recorder = current_recorder()
    if recorder is not None:
        topics = sorted({item.topic for item in items if item.topic})
        recorder.event(
            "retrieved",
            ROLE,
            ids=[item.key for item in items],
            topics=topics,
            strategy=source,
            router_used=False,
        )
    return items
