"""DocMind's router engine: chooses a search strategy for each query, and searches with it.

    engine = RouterEngine(index, client, async_client)                                    # chooses by words
    engine = RouterEngine(index, client, async_client, ModelSelector(model, ModelCalls("router_engine")))
    engine.query("What is the difference between is and ==?").source_nodes

It has LlamaIndex's shape, so that it and a `RouterQueryEngine` are injected alike. As there, the choice may cost a
model call before anything is searched: that is what an honest comparison of injection includes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from qdrant_client import AsyncQdrantClient, QdrantClient

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.docmind.retrieval.index import SearchIndex
from docmind_lab.docmind.retrieval.injection import calling_state
from docmind_lab.docmind.retrieval.results import RetrievedDocument
from docmind_lab.docmind.retrieval.strategies import LIMIT, STRATEGIES, search, search_async
from docmind_lab.network import current_call
from docmind_lab.services.scripted_model.roles import strategy_for

SELECTOR_PROMPT = """You are the router engine of DocMind. Choose with select_engine how to search for the query: \
"graph" for what is related, compared or different, "hierarchical" for an overview \
or a whole section, "hybrid" otherwise."""
_TOOL = "select_engine"


class Selector(Protocol):
    """Chooses a strategy for a query. Sync and async choose the same."""

    def select(self, query: str, strategies: Sequence[str]) -> str:
        """Choose one of the strategies."""
        ...

    async def aselect(self, query: str, strategies: Sequence[str]) -> str:
        """`select`, as a coroutine."""
        ...


@dataclass(frozen=True)
class RuleSelector:
    """Chooses by the query's words, with the scripted model's rules; makes no model call."""

    def select(self, query: str, strategies: Sequence[str]) -> str:
        """Choose one of the strategies by the query's words."""
        return strategy_for(query, strategies)

    async def aselect(self, query: str, strategies: Sequence[str]) -> str:
        """`select`, as a coroutine."""
        return strategy_for(query, strategies)


class ModelPath(Protocol):
    """Middleware around every model call of a role: recording, caps, retries. `ModelCalls` is one."""

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Make one model call."""
        ...

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Make one model call, async."""
        ...


@dataclass(frozen=True)
class ModelSelector:
    """Chooses a strategy with one model call.

    Place in the run and deadline are those of the agent that asks the engine. It raises what the call raises, and
    ServiceError for a choice that was not offered.

    path: what the call goes through, so that it is observed, capped and refused as a role's own calls are; pass
    `ModelCalls("router_engine")`.
    """

    model: BaseChatModel
    path: ModelPath

    def select(self, query: str, strategies: Sequence[str]) -> str:
        """Choose one of the strategies with a model call."""
        response = self.path.wrap_model_call(self._request(query, strategies), _Call(strategies).answer)
        return _choice(response, strategies)

    async def aselect(self, query: str, strategies: Sequence[str]) -> str:
        """`select`, as a coroutine."""
        response = await self.path.awrap_model_call(self._request(query, strategies), _Call(strategies).answer_async)
        return _choice(response, strategies)

    def _request(self, query: str, strategies: Sequence[str]) -> ModelRequest[Any]:
        state: Any = {"messages": [], **calling_state()}
        return ModelRequest(
            model=self.model,
            messages=[HumanMessage(query)],
            system_message=SystemMessage(SELECTOR_PROMPT),
            state=state,
        )


class _Call:
    """The handler of the selector's model call, which links the recorded call to the engine's own as its parent."""

    def __init__(self, strategies: Sequence[str]) -> None:
        self._parent = current_call()
        self._tool = _select_engine(strategies)

    def answer(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        return ModelResponse(result=[self._runnable(request).invoke(_messages(request), **request.model_settings)])

    async def answer_async(self, request: ModelRequest[Any]) -> ModelResponse[Any]:
        message = await self._runnable(request).ainvoke(_messages(request), **request.model_settings)
        return ModelResponse(result=[message])

    def _runnable(self, request: ModelRequest[Any]) -> Any:
        call = current_call()
        if call is not None and self._parent is not None and call is not self._parent:
            call.parent_call_id = self._parent.call_id
        # The choice is no part of the answer: LangGraph leaves calls with this tag out of streamed messages.
        return request.model.bind_tools([self._tool]).with_config(tags=["nostream"])


def _messages(request: ModelRequest[Any]) -> list[Any]:
    return [request.system_message, *request.messages]


def _select_engine(strategies: Sequence[str]) -> dict[str, Any]:
    properties = {"engine": {"type": "string", "enum": list(strategies), "description": "How to search."}}
    parameters = {"type": "object", "properties": properties, "required": ["engine"]}
    function = {"name": _TOOL, "description": "Choose how to search for the query.", "parameters": parameters}
    return {"type": "function", "function": function}


def _choice(response: ModelResponse[Any], strategies: Sequence[str]) -> str:
    message = next((message for message in response.result if isinstance(message, AIMessage)), AIMessage(""))
    chosen = [call["args"].get("engine") for call in message.tool_calls if call["name"] == _TOOL]
    # A model without tools says it in words; the first name it says counts.
    words = message.text.lower().replace('"', " ").replace(".", " ").replace(",", " ").split()
    chosen += [word for word in words if word in strategies]
    if not chosen or chosen[0] not in strategies:
        raise ServiceError(f"the router's model chose none of {', '.join(strategies)}")
    return str(chosen[0])


@dataclass(frozen=True)
class SourceNode:
    """A document in the shape of LlamaIndex's NodeWithScore."""

    node: RetrievedDocument
    node_id: str
    text: str
    metadata: Mapping[str, Any]
    score: float

    def get_content(self) -> str:
        """Return the document's text."""
        return self.text


@dataclass(frozen=True)
class RouterAnswer:
    """A router engine's answer: sources, and the strategy that found them. It has no text of its own."""

    source_nodes: tuple[SourceNode, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    response: str = ""


@dataclass(frozen=True)
class RouterEngine:
    """A router over the search strategies of one index; every request goes through the given clients.

    selector: chooses a strategy for each query. strategies: what it chooses from, in order.
    Raises: ConfigurationError: a strategy does not exist, there is none, or the limit is below 1.
    """

    index: SearchIndex
    client: QdrantClient
    async_client: AsyncQdrantClient | None = None
    selector: Selector = field(default_factory=RuleSelector)
    strategies: tuple[str, ...] = STRATEGIES
    limit: int = LIMIT

    def __post_init__(self) -> None:
        unknown = [name for name in self.strategies if name not in STRATEGIES]
        if unknown or not self.strategies:
            raise ConfigurationError(f"strategies must be some of {', '.join(STRATEGIES)}, not {self.strategies!r}")
        if self.limit < 1:
            raise ConfigurationError(f"limit must be 1 or more, not {self.limit}")

    def query(self, query: str) -> RouterAnswer:
        """Search with the strategy that the selector chooses. Raises what selector, search and client raise."""
        strategy = self.selector.select(query, self.strategies)
        return _answer(strategy, search(self.client, self.index, strategy, query, limit=self.limit))

    async def aquery(self, query: str) -> RouterAnswer:
        """`query`, as a coroutine. Raises: ConfigurationError without an async client."""
        if self.async_client is None:
            raise ConfigurationError("RouterEngine has no async_client: give it one to run the graph async")
        strategy = await self.selector.aselect(query, self.strategies)
        return _answer(strategy, await search_async(self.async_client, self.index, strategy, query, limit=self.limit))


def _answer(strategy: str, documents: Sequence[RetrievedDocument]) -> RouterAnswer:
    nodes = (SourceNode(found, found.id, found.content, found.metadata, found.score) for found in documents)
    return RouterAnswer(tuple(nodes), {"strategy": strategy})
