"""The search index as a LlamaIndex retriever, for a `RouterQueryEngine` of your own.

    retriever = llamaindex_retriever(index, client, "graph")
    engine = RetrieverQueryEngine(retriever, NoText(llm=MockLLM()))
    tool = QueryEngineTool.from_defaults(engine, description="What is related or compared.")
    router = RouterQueryEngine(selector, [tool, ...], llm=MockLLM())

Give every one of them its `llm`, and the router a selector: without, LlamaIndex looks for a package that is not
installed with it. `NoText` is of `llama_index.core.response_synthesizers.no_text`; made by its mode "no_text", it
would lose the `llm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qdrant_client import AsyncQdrantClient, QdrantClient

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.retrieval.index import SearchIndex
from docmind_lab.docmind.retrieval.results import RetrievedDocument
from docmind_lab.docmind.retrieval.strategies import LIMIT, build_query, search, search_async

if TYPE_CHECKING:
    from llama_index.core.base.base_retriever import BaseRetriever


def llamaindex_retriever(
    index: SearchIndex,
    client: QdrantClient,
    strategy: str = "hybrid",
    *,
    async_client: AsyncQdrantClient | None = None,
    limit: int = LIMIT,
) -> BaseRetriever:
    """Return a LlamaIndex retriever that searches the index by one strategy; node ids are document ids.

    It has no time hooks of its own: through clients of ours (`HttpClients`), its requests are held to the deadline in
    force around it.

    async_client: for `aretrieve`, which without one is refused rather than left to block the loop.
    Raises: ConfigurationError: llama-index-core is not installed, the strategy is unknown, or the limit is below 1.
    """
    build_query(index, strategy, "", limit)
    try:
        # Slow to import, and only there with the extra.
        from llama_index.core.base.base_retriever import BaseRetriever  # noqa: PLC0415 - optional and slow
        from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode  # noqa: PLC0415 - optional and slow
    except ImportError as error:
        raise ConfigurationError(
            "llama-index-core is not installed: pip install 'docmind_lab[llamaindex]' to use our index from LlamaIndex"
        ) from error

    def nodes(documents: Sequence[RetrievedDocument]) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=TextNode(id_=one.id, text=one.content, metadata=dict(one.metadata)), score=one.score)
            for one in documents
        ]

    class IndexRetriever(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return nodes(search(client, index, strategy, query_bundle.query_str, limit=limit))

        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            if async_client is None:
                raise ConfigurationError("llamaindex_retriever has no async_client: give it one to retrieve async")
            return nodes(await search_async(async_client, index, strategy, query_bundle.query_str, limit=limit))

    return IndexRetriever()
