"""DocMind's router engine: a model chooses a search strategy for each query, and the engine searches with it.

    engine = RouterEngine(index, client, async_client, ModelClient(model, ModelCalls("router_engine")))
    engine.query("What is the difference between is and ==?").source_nodes

Its answers have LlamaIndex's shape, so that it and a `RouterQueryEngine` are injected alike. As there, the choice
costs a model call before anything is searched: that is what an honest comparison of injection includes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langchain_core.messages import AIMessage, HumanMessage
from qdrant_client import AsyncQdrantClient, QdrantClient

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.systems.base.model_client import ModelClient, function_tool
from docmind_lab.systems.base.results import RetrievedDocument
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.strategies import STRATEGIES, search, search_async

SELECTOR_PROMPT = """You are the router engine of DocMind. Choose with select_engine how to search for the query: \
"graph" for what is related, compared or different, "hierarchical" for an overview \
or a whole section, "hybrid" otherwise."""
_TOOL = "select_engine"
_ENGINE = {"type": "string", "enum": list(STRATEGIES), "description": "How to search."}
_SELECT_ENGINE: Final = function_tool(_TOOL, "Choose how to search for the query.", {"engine": _ENGINE})


@dataclass(frozen=True)
class RouterAnswer:
    """A router engine's answer: sources, and the strategy that found them. It has no text of its own."""

    source_nodes: tuple[RetrievedDocument, ...]
    metadata: Mapping[str, Any]
    response: str = ""


@dataclass(frozen=True)
class RouterEngine:
    """A router over the strategies of one index, through the given clients. place: of its calls, as a graph's state."""

    index: SearchIndex
    client: QdrantClient
    async_client: AsyncQdrantClient | None
    model_client: ModelClient
    place: Mapping[str, Any] = field(default_factory=dict)

    def placed_at(self, place: Mapping[str, Any]) -> RouterEngine:
        """Return the engine for an agent at this place in the run, with the deadline in it."""
        return replace(self, place=place)

    def query(self, query: str) -> RouterAnswer:
        """Search with the strategy that the model chooses. Raises: ServiceError for one that was not offered."""
        return finish(self._answer(query))

    async def aquery(self, query: str) -> RouterAnswer:
        """`query`, as a coroutine. Raises: ConfigurationError without an async client."""
        if self.async_client is None:
            raise ConfigurationError("RouterEngine has no async_client: give it one to run the graph async")
        return await afinish(self._answer(query))

    def _answer(self, query: str) -> Steps[RouterAnswer]:
        message = yield self.model_client.ask(
            [HumanMessage(query)], self.place, system=SELECTOR_PROMPT, tools=[_SELECT_ENGINE]
        )
        strategy, async_client = _choice(message), self.async_client
        documents = yield Operation(
            lambda: search(self.client, self.index, strategy, query),
            lambda: search_async(async_client, self.index, strategy, query),  # type: ignore[arg-type]
        )
        return RouterAnswer(documents, {"strategy": strategy})


def _choice(message: AIMessage) -> str:
    chosen = [call["args"].get("engine") for call in message.tool_calls if call["name"] == _TOOL]
    # A model without tools says it in words; the first name it says counts.
    words = message.text.lower().replace('"', " ").replace(".", " ").replace(",", " ").split()
    chosen += [word for word in words if word in STRATEGIES]
    if not chosen or chosen[0] not in STRATEGIES:
        raise ServiceError(f"the router's model chose none of {', '.join(STRATEGIES)}")
    return str(chosen[0])
