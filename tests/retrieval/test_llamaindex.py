"""A real LlamaIndex RouterQueryEngine over our index is used, believed, and fallen back from (supervisor.md 25)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient
from retrieval_fakes import LIBRARY, AsyncClient, call_tool, payload_of, runtime

from docmind_lab.core.deadlines import Deadline
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.strategies import search, search_async
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources

pytest.importorskip("llama_index.core", reason="llama-index-core is an optional extra: docmind_lab[llamaindex]")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import QueryEngineTool

QUERY = "When is a lock released?"


class First(BaseSelector):
    """Chooses the first engine, or fails."""

    error: Exception | None = None

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        pass

    def _select(self, choices: Any, query: Any) -> SelectorResult:
        if self.error is not None:
            raise self.error
        return SelectorResult(selections=[SingleSelection(index=0, reason="it is the first")])

    async def _aselect(self, choices: Any, query: Any) -> SelectorResult:
        return self._select(choices, query)


def retriever_of(index: SearchIndex, client: Any, strategy: str = "hybrid", async_client: Any = None) -> BaseRetriever:
    """A retriever of LlamaIndex's that searches our index."""

    def nodes(documents: Any) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=one.id, text=one.content, metadata=one.metadata), score=one.score)
            for one in documents
        ]

    class OurIndex(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return nodes(search(client, index, strategy, query_bundle.query_str))

        async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return nodes(await search_async(async_client, index, strategy, query_bundle.query_str))

    return OurIndex()


def router_over(retriever: Any, error: Exception | None = None) -> RouterQueryEngine:
    selector = First()
    selector.error = error
    engine = RetrieverQueryEngine(retriever, NoText(llm=MockLLM()))
    return RouterQueryEngine(
        selector, [QueryEngineTool.from_defaults(engine, description="Everything.")], llm=MockLLM()
    )


@pytest.fixture(scope="module")
def index(client: QdrantClient) -> SearchIndex:
    return SearchIndex.build(client, LIBRARY)


def with_async_client(index: SearchIndex) -> Any:
    other: Any = QdrantClient(":memory:")
    SearchIndex.build(other, LIBRARY)
    return AsyncClient(other)


def payload_by(door: str, resources: RetrievalResources, router: Any, **state: Any) -> dict[str, Any]:
    context = {"router_engine": router}
    return payload_of(call_tool(door, resources, query=QUERY, runtime=runtime(state, context), strategy="hybrid"))


@pytest.mark.parametrize("state", [{}, {"deadline_ts": 60.0}], ids=["no deadline", "deadline"])
@pytest.mark.parametrize("door", ["sync", "async"])
def test_its_nodes_become_documents_with_clean_metadata(
    client: QdrantClient, index: SearchIndex, door: str, state: dict[str, float]
):
    state = {key: Deadline.after(value).at_s for key, value in state.items()}
    doors = with_async_client(index)
    resources = RetrievalResources(index, client, doors, router_injection=True)
    payload = payload_by(door, resources, router_over(retriever_of(index, client, async_client=doors)), **state)
    wanted = [document.to_payload() for document in search(client, index, "hybrid", QUERY.rstrip("?"))]
    assert (payload["router_used"], payload["strategy_used"]) == (True, "router")
    assert payload["documents"] == wanted
    assert payload["documents"][0]["metadata"] == {"topic": "lock", "section": "Locks"}


@pytest.mark.parametrize("door", ["sync", "async"])
def test_one_that_fails_falls_open(client: QdrantClient, index: SearchIndex, door: str):
    doors = with_async_client(index)
    resources = RetrievalResources(index, client, doors, router_injection=True)
    router = router_over(retriever_of(index, client, async_client=doors), error=ValueError("no choice"))
    payload = payload_by(door, resources, router)
    assert (payload["router_used"], payload["router_error_type"]) == (False, "ValueError")
    assert (payload["strategy_used"], payload["documents"][0]["id"]) == ("hybrid", "lock#1")


@pytest.mark.wall
@pytest.mark.parametrize("door", ["sync", "async"])
def test_its_requests_over_http_are_observed_and_held_to_the_routers_share(live: ServiceAddresses, door: str):
    http = HttpClients()
    client = http.qdrant(live.qdrant_url)
    index = SearchIndex.build(client, replace(LIBRARY, collection=f"llamaindex-{door}"))
    async_client: AsyncQdrantClient = http.qdrant_async(live.qdrant_url)
    router = router_over(retriever_of(index, client, "hierarchical", async_client))
    resources = RetrievalResources(index, client, async_client, router_injection=True)
    deadline = Deadline.after(30.0)  # generous: what is looked at is the cap, not the time
    recorder = Recorder(f"llamaindex-{door}", 3, deadline)
    with recording(recorder):
        payload = payload_by(door, resources, router, deadline_ts=deadline.at_s)
    client.close()
    http.close()
    assert payload["router_used"] is True
    assert [(a.call.call_id, a.number, a.outcome) for a in recorder.snapshot().attempts] == [
        ("retrieval/router_engine/0.0.1", 1, "ok"),
        ("retrieval/router_engine/0.0.1", 2, "ok"),
    ]
    for attempt in recorder.snapshot().attempts:
        assert attempt.capped
        assert attempt.deadline is not None
        assert attempt.deadline.at_s <= deadline.at_s - 14.0
