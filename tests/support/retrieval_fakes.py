"""Passages, clients and calls of the retrieval tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.tools import ToolRuntime

from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.corpus import Chunk

CHUNKS = (
    Chunk("lock#1", "lock", "Locks", "A lock is released by the context manager."),
    Chunk("lock#2", "lock", "Locks", "Waiting for a lock may time out."),
    Chunk("yield#1", "yield", "Generators", "A generator yields values lazily."),
)
KEYS = {
    "documents",
    "strategy_used",
    "query_original",
    "query_optimized",
    "document_count",
    "processing_time_ms",
    "router_used",
}
"""Of every payload."""


class AsyncClient:
    """The async door of a client."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def query_points(self, **arguments: Any) -> Any:
        return self.client.query_points(**arguments)

    async def scroll(self, **arguments: Any) -> Any:
        return self.client.scroll(**arguments)


def runtime(state: Mapping[str, Any] | None = None, context: Any = None) -> ToolRuntime[Any, Any]:
    return ToolRuntime(
        state=dict(state or {}), context=context, config={}, stream_writer=lambda _: None, tool_call_id="c1", store=None
    )


def details(recorder: Recorder, name: str) -> list[dict[str, Any]]:
    """The details of the events of a name."""
    return [event.detail for event in recorder.snapshot().events if event.event == name]
