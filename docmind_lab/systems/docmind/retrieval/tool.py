"""The `retrieve_documents` tool, with which agents search, and the payload that it always returns.

    documents [{id, content, metadata, score}], strategy_used, query_original, query_optimized, document_count,
    processing_time_ms, router_used                            # on failure also: error, error_type
                                                               # router failed: router_error_type

With router injection on, an injected router engine is asked first (injection.py); whatever goes wrong with it,
explicit retrieval follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command
from pydantic import Field
from qdrant_client import AsyncQdrantClient, QdrantClient

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.network.exchange import Admission
from docmind_lab.systems.base.bounded_calls import RETRIEVAL, SEARCH_FAILURES, bounded_search
from docmind_lab.systems.base.results import RetrievedDocument, record_retrieved
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.injection import RouterCall, RouterResult, check_endpoints, find_router
from docmind_lab.systems.docmind.retrieval.strategies import LIMIT, STRATEGIES, search, search_async, strategy_in_effect
from docmind_lab.systems.docmind.runtime_tools import runtime_tool

Strategy = Literal["hybrid", "hierarchical", "graph"]


@dataclass(frozen=True)
class RetrievalResources:
    """Everything a search needs: the index, the clients that reach its collection, the router's options.

    client: of the vector store, for sync runs. async_client: for async runs; it belongs to the event loop it is first
    used on. clock: what deadlines are read on. router_injection: whether an injected router engine is used; off, one is
    never touched. router_engine: the engine when neither runtime context nor state brings one. admit: raises for an
    endpoint that may not be reached, as `Settings.admit`; None for that of the settings in the environment. The tool
    does not use an engine that is injected later, by context or state, and is refused.
    Raises: ConfigurationError: the engine has no `query`. EndpointRefused: the engine declares an endpoint that is not
    admitted.
    """

    index: SearchIndex
    client: QdrantClient
    async_client: AsyncQdrantClient | None = None
    clock: Clock = field(default=WALL)
    router_injection: bool = False
    router_engine: Any = None
    admit: Admission | None = None

    def __post_init__(self) -> None:
        if self.router_engine is None:
            return
        if not callable(getattr(self.router_engine, "query", None)):
            raise ConfigurationError("router_engine has no query(str): pass an object with that method")
        check_endpoints(self.router_engine, self.admit)


def optimised_query(query: str) -> str:
    """Return the query as it is searched: white space folded, final punctuation removed."""
    return " ".join(query.split()).rstrip("?!. ").strip()


@dataclass
class _Search:
    """One search of the tool: its arguments, its start, and the router's result."""

    runtime: ToolRuntime[Any, Any]
    resources: RetrievalResources
    query: str
    strategy: str
    limit: int
    routed: RouterResult = field(default_factory=RouterResult)
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.resources.clock.now()

    def router_call(self) -> RouterCall | None:
        """Return the question to the injected router; None if injection is off or no router is injected."""
        resources = self.resources
        if not resources.router_injection:
            return None
        state: Mapping[str, Any] = self.runtime.state
        engine = find_router(self.runtime.context, state, resources.router_engine)
        if engine is None:
            return None
        query, deadline = optimised_query(self.query), Deadline.from_state(state, resources.clock)
        return RouterCall(engine, query, self.limit, state, deadline, resources.admit)

    @property
    def strategy_used(self) -> str:
        """The strategy that found the documents; "router" for an engine that names none of ours."""
        if self.routed.documents:
            return self.routed.strategy if self.routed.strategy in STRATEGIES else "router"
        return strategy_in_effect(self.resources.index, self.strategy)

    def payload(self, documents: Sequence[RetrievedDocument], error: BaseException | None = None) -> dict[str, Any]:
        """Return the payload that the tool returns."""
        result: dict[str, Any] = {
            "documents": [document.to_payload() for document in documents],
            "strategy_used": self.strategy_used,
            "query_original": self.query,
            "query_optimized": optimised_query(self.query),
            "document_count": len(documents),
            "processing_time_ms": round((self.resources.clock.now() - self.started_at) * 1000, 3),
            "router_used": bool(self.routed.documents),
        }
        if self.routed.error_type:
            result["router_error_type"] = self.routed.error_type
        if error is not None:
            result |= {"error": _public_message(error), "error_type": type(error).__name__}
        return result

    def command(self, documents: Sequence[RetrievedDocument], error: BaseException | None = None) -> Command[Any]:
        """Return the tool's command: the payload for the model, and the documents for the state."""
        if error is None:
            ids, topics = [one.id for one in documents], [one.topic for one in documents]
            record_retrieved(RETRIEVAL, ids, topics, self.strategy_used, router_used=bool(self.routed.documents))
        payload = self.payload(documents, error)
        message = ToolMessage(
            json.dumps(payload, ensure_ascii=False),
            tool_call_id=self.runtime.tool_call_id or "",
            name="retrieve_documents",
            status="success" if error is None else "error",
        )
        return Command(update={"messages": [message], "documents": payload["documents"]})


# What a search may fail with and the agents can go on without; anything else is a defect and is raised.
# ValueError is what a local Qdrant says of a collection it does not have.
_SURVIVABLE = (*SEARCH_FAILURES, DocmindLabError, ValueError)


def _public_message(error: BaseException) -> str:
    # An HTTP client's message may quote the request; the type of the error says enough.
    return str(error) if isinstance(error, DocmindLabError) else f"the search failed: {type(error).__name__}"


_STRATEGY_HELP = "hybrid: by words and meaning; hierarchical: with what stands around; graph: with what is referred to."


def create_retrieve_documents(resources: RetrievalResources) -> BaseTool:
    """Return a `retrieve_documents` tool that searches with these resources.

    A search that fails or is cut returns the payload with `error` and `error_type`; it does not raise. Under a
    deadline its requests end with it, and nothing is left running on this side but what an injected router leaves.
    """

    def retrieve(
        query: Annotated[str, Field(description="What to look for, in words.")],
        runtime: ToolRuntime[Any, Any],
        strategy: Annotated[Strategy, Field(description=_STRATEGY_HELP)] = "hybrid",
        limit: Annotated[int, Field(ge=1, le=50, description="How many documents.")] = LIMIT,
    ) -> Command[Any]:
        return finish(_search_steps(_Search(runtime, resources, query, strategy, limit)))

    async def retrieve_async(
        query: str, runtime: ToolRuntime[Any, Any], strategy: Strategy = "hybrid", limit: int = LIMIT
    ) -> Command[Any]:
        if resources.async_client is None:
            raise ConfigurationError("RetrievalResources has no async_client: give it one to run the graph async")
        return await afinish(_search_steps(_Search(runtime, resources, query, strategy, limit)))

    return runtime_tool(
        retrieve,
        retrieve_async,
        name="retrieve_documents",
        description="Search the documents; returns passages with their ids.",
        return_direct=True,
    )


def _search_steps(under_way: _Search) -> Steps[Command[Any]]:
    """Search with the router, or else with the strategy."""
    resources, query = under_way.resources, optimised_query(under_way.query)
    arguments: Any = (resources.index, under_way.strategy, query)
    async_client: Any = resources.async_client
    try:
        if (router := under_way.router_call()) is not None:
            under_way.routed = yield Operation(router.ask, router.ask_async)
        if under_way.routed.documents:
            return under_way.command(under_way.routed.documents)
        with bounded_search(under_way.runtime.state, resources.clock):
            documents = yield Operation(
                lambda: search(resources.client, *arguments, limit=under_way.limit),
                lambda: search_async(async_client, *arguments, limit=under_way.limit),
            )
    except _SURVIVABLE as error:
        return under_way.command((), error)
    return under_way.command(documents)
