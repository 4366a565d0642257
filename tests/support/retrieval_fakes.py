"""Passages, clients and calls of the retrieval tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from graph_fakes import CHUNKS as EVERY_CHUNK
from langchain.tools import ToolRuntime
from langgraph.types import Command
from qdrant_client import AsyncQdrantClient

from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.documents import Library
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources, create_retrieve_documents

CHUNKS = EVERY_CHUNK[:3]
LIBRARY = Library(CHUNKS, "docs")
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


def call_tool(door: str, found_in: RetrievalResources, **arguments: Any) -> Command[Any]:
    """What `retrieve_documents` gives to its graph, called by its sync or its async function.

    A real async client is closed on the loop that has its connections, which ends with the call.
    """
    made: Any = create_retrieve_documents(found_in)

    async def called() -> Command[Any]:
        try:
            return await made.coroutine(**arguments)
        finally:
            if isinstance(found_in.async_client, AsyncQdrantClient):
                await found_in.async_client.close()

    return made.func(**arguments) if door == "sync" else asyncio.run(called())


def payload_of(command: Command[Any]) -> dict[str, Any]:
    """The payload in the one message of a command, whose documents go into the state too."""
    (message,) = command.update["messages"]  # type: ignore[index]
    payload: dict[str, Any] = json.loads(message.text)
    assert command.update["documents"] == payload["documents"]  # type: ignore[index]
    return payload


def details(recorder: Recorder, name: str) -> list[dict[str, Any]]:
    """The details of the events of a name."""
    return [event.detail for event in recorder.snapshot().events if event.event == name]
