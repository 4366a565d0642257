"""Our own router engine: how it chooses, what it answers, and that its model call is observed and capped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import Field
from qdrant_client import QdrantClient
from retrieval_fakes import CHUNKS, AsyncClient

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.services.server import ServiceProcess
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.observer import ObservedSaver
from docmind_lab.systems.docmind.graphs import (
    MultiAgentGraphState,
    build_multi_agent_supervisor_graph,
    build_role_agents,
    create_forward_message_tool,
)
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.injection import RouterCall
from docmind_lab.systems.docmind.retrieval.strategies import search
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources
from docmind_lab.systems.docmind.router import RouterEngine


@pytest.fixture(scope="module")
def index(client: QdrantClient) -> SearchIndex:
    return SearchIndex.build(client, CHUNKS, references={"lock": ("yield",)})


# ---- the model's choice


class Chooser(BaseChatModel):
    """Answers with `reply`; notes what it is asked and offered."""

    reply: AIMessage
    asked: list[list[BaseMessage]] = Field(default_factory=list)
    offered: list[Any] = Field(default_factory=list)
    settings: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "chooser"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        self.offered.append(tools[0]["function"])
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        self.settings.append(kwargs)
        return ChatResult(generations=[ChatGeneration(message=self.reply)])


def choosing(engine: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "select_engine", "args": {"engine": engine}, "id": "1"}])


def engine_of(index: SearchIndex, client: Any, model: BaseChatModel, async_client: Any = None) -> RouterEngine:
    return RouterEngine(index, client, async_client, ModelClient(model, ModelCalls("router_engine")))


@pytest.mark.parametrize(
    "reply", [choosing("graph"), AIMessage("graph"), AIMessage('I choose "graph", not hybrid.'), AIMessage("Graph.")]
)
def test_it_searches_by_the_strategy_that_the_model_calls_a_tool_with_or_says(
    client: QdrantClient, index: SearchIndex, reply: AIMessage
):
    model = Chooser(reply=reply)
    engine = engine_of(index, client, model, AsyncClient(client))
    wanted = search(client, index, "graph", "When is a lock released?")
    for answer in (engine.query("When is a lock released?"), asyncio.run(engine.aquery("When is a lock released?"))):
        assert answer.metadata == {"strategy": "graph"}
        assert answer.source_nodes == wanted
    assert [message.type for message in model.asked[0]] == ["system", "human"]
    assert model.asked[0][1].content == "When is a lock released?"
    assert model.offered[0]["parameters"]["properties"]["engine"]["enum"] == ["hybrid", "hierarchical", "graph"]


@pytest.mark.parametrize("reply", [choosing("dense"), choosing(None), choosing(["graph"]), AIMessage("Anything.")])
def test_a_choice_that_was_not_offered_is_an_error(client: QdrantClient, index: SearchIndex, reply: AIMessage):
    with pytest.raises(ServiceError, match="hybrid, hierarchical, graph"):
        engine_of(index, client, Chooser(reply=reply)).query("When?")


def test_an_engine_without_an_async_client_says_so(client: QdrantClient, index: SearchIndex):
    with pytest.raises(ConfigurationError, match="async_client"):
        asyncio.run(engine_of(index, client, Chooser(reply=choosing("hybrid"))).aquery("lock"))


def asked_by(engine: RouterEngine, state: Mapping[str, Any], deadline: Deadline | None) -> Any:
    return RouterCall(engine, "When is a lock released?", 5, state, deadline)


def test_the_models_call_gets_what_is_left_of_the_routers_share(client: QdrantClient, index: SearchIndex):
    model = Chooser(reply=choosing("hybrid"))
    engine = engine_of(index, client, model)
    routed = asked_by(engine, {}, Deadline.after(20.0)).ask()
    assert routed.documents[0].id == "lock#1"
    # Half of twenty seconds, less what it took to get there.
    assert 8.0 < model.settings[0]["timeout"] <= 10.0
    asked_by(engine, {}, None).ask()
    assert "timeout" not in model.settings[1]


# ---- over HTTP


@pytest.fixture(scope="module")
def http() -> Iterator[HttpClients]:
    clients = HttpClients()
    yield clients
    clients.close()


@pytest.fixture(scope="module")
def model(services: ServiceProcess, http: HttpClients) -> ChatOpenAI:
    return ChatOpenAI(
        model="docmind-scripted",
        base_url=services.addresses.openai_base_url,
        api_key="unused",
        http_client=http.openai,
        http_async_client=http.openai_async,
    )


@pytest.fixture(scope="module")
def remote(services: ServiceProcess, http: HttpClients) -> Iterator[QdrantClient]:
    client = http.qdrant(services.addresses.qdrant_url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def remote_index(remote: QdrantClient) -> SearchIndex:
    return SearchIndex.build(remote, CHUNKS, collection="router", references={"lock": ("yield",)})


@pytest.mark.wall
def test_choice_and_search_are_observed_as_the_routers_calls_and_capped_by_its_share(
    remote: QdrantClient, remote_index: SearchIndex, model: ChatOpenAI
):
    engine = engine_of(remote_index, remote, model)
    deadline = Deadline.after(30.0)  # generous: what is looked at is the cap, not the time
    recorder = Recorder("router-run", 3, deadline)
    call = RouterCall(engine, "How is a lock related to a generator?", 5, {"handoff_ordinal": 2}, deadline)
    with recording(recorder):
        routed = call.ask()
    assert routed.strategy == "graph"
    attempts = recorder.snapshot().attempts
    assert [(a.call.call_id, a.number, a.call.parent_call_id, a.capped, a.outcome) for a in attempts] == [
        ("llm/router_engine/2.0.1", 1, "retrieval/router_engine/2.0.1", True, "ok"),
        ("retrieval/router_engine/2.0.1", 1, "", True, "ok"),
    ]
    assert all(a.deadline is not None and a.deadline.at_s <= deadline.at_s - 14.0 for a in attempts)
    assert attempts[0].output_tokens


def supervisor(model: ChatOpenAI, resources: RetrievalResources) -> Any:
    graph = build_multi_agent_supervisor_graph(
        build_role_agents(model, resources=resources),
        model=model,
        prompt="You are the supervisor.",
        state_schema=MultiAgentGraphState,
        extra_tools=[create_forward_message_tool("supervisor")],
    )
    return graph.compile(checkpointer=ObservedSaver())


@pytest.mark.wall
@pytest.mark.parametrize("tools_data", [False, True])
def test_a_router_in_the_runtime_context_of_the_whole_graph_reaches_the_tool_and_no_checkpoint(
    remote: QdrantClient, remote_index: SearchIndex, model: ChatOpenAI, tools_data: bool
):
    engine = engine_of(remote_index, remote, model)
    resources = RetrievalResources(remote_index, remote, router_injection=True)
    inputs: dict[str, Any] = {"messages": [HumanMessage("When is a lock released by the context manager?")]}
    context: dict[str, Any] = {"router_engine": engine}
    recorder = Recorder(f"graph-{tools_data}", 3, Deadline.after(60.0))
    compiled = supervisor(model, resources)
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 40}
    with recording(recorder):
        state = compiled.invoke(inputs, config, context={"tools_data": context} if tools_data else context)
    found = [event.detail for event in recorder.snapshot().events if event.event == "retrieved"]
    assert [(one["router_used"], one["strategy"]) for one in found] == [(True, "hybrid")]
    assert state["documents"][0]["id"] == "lock#1"
    assert "lock#1" in state["messages"][-1].text
    history = list(compiled.get_state_history(config))
    assert history
    assert all("RouterEngine" not in repr(snapshot) for snapshot in history)
    roles = {a.call.role for a in recorder.snapshot().attempts if a.call.kind == "retrieval"}
    assert roles == {"router_engine"}
