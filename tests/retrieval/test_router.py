"""Our own router engine: how it chooses, what it answers, and that its model call is observed and capped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from graph_fakes import SIMPLE, FakeModel, asked, docmind, in_turn, recorder, resources, scripted_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from qdrant_client import QdrantClient
from retrieval_fakes import LIBRARY, AsyncClient, details

import docmind_lab as dl
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.network.recorder import recording
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.injection import RouterCall
from docmind_lab.systems.docmind.retrieval.strategies import search
from docmind_lab.systems.docmind.router import RouterEngine


@pytest.fixture(scope="module")
def index(client: QdrantClient) -> SearchIndex:
    return SearchIndex.build(client, replace(LIBRARY, references={"lock": ("yield",)}))


# ---- the model's choice


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
    offered: list[Any] = []

    def say(messages: Any, tools: Any) -> AIMessage:
        offered.append(tools)
        return reply

    model = FakeModel(say=say)
    engine = engine_of(index, client, model, AsyncClient(client))
    wanted = search(client, index, "graph", "When is a lock released?")
    for answer in (engine.query("When is a lock released?"), asyncio.run(engine.aquery("When is a lock released?"))):
        assert answer.metadata == {"strategy": "graph"}
        assert answer.source_nodes == wanted
    assert [message.type for message in model.requests[0]] == ["system", "human"]
    assert model.requests[0][1].content == "When is a lock released?"
    assert offered[0]["select_engine"]["properties"]["engine"]["enum"] == ["hybrid", "hierarchical", "graph"]


@pytest.mark.parametrize("reply", [choosing("dense"), choosing(None), choosing(["graph"]), AIMessage("Anything.")])
def test_a_choice_that_was_not_offered_is_an_error(client: QdrantClient, index: SearchIndex, reply: AIMessage):
    with pytest.raises(ServiceError, match="hybrid, hierarchical, graph"):
        engine_of(index, client, in_turn(reply)).query("When?")


def test_an_engine_without_an_async_client_says_so(client: QdrantClient, index: SearchIndex):
    with pytest.raises(ConfigurationError, match="async_client"):
        asyncio.run(engine_of(index, client, in_turn(choosing("hybrid"))).aquery("lock"))


def asked_by(engine: RouterEngine, state: Mapping[str, Any], deadline: Deadline | None) -> Any:
    return RouterCall(engine, "When is a lock released?", 5, state, deadline)


def test_the_models_call_gets_what_is_left_of_the_routers_share(client: QdrantClient, index: SearchIndex):
    model = in_turn(choosing("hybrid"))
    engine = engine_of(index, client, model)
    routed = asked_by(engine, {}, Deadline.after(20.0)).ask()
    assert routed.documents[0].id == "lock#1"
    # Half of twenty seconds, less what it took to get there.
    assert 8.0 < model.settings[0]["timeout"] <= 10.0
    asked_by(engine, {}, None).ask()
    assert "timeout" not in model.settings[1]


# ---- in a run


def test_choice_and_search_are_observed_as_the_routers_calls_and_capped_by_its_share() -> None:
    calls = dl.compare(dl.docmind(router_injection=True), alternatives="A", runs=1).calls
    mine = calls[(calls["role"].astype("str") == "router_engine") & (calls["seen_from"].astype("str") == "client")]
    assert mine[["call_id", "attempt", "parent_call_id", "outcome"]].astype("str").values.tolist() == [
        ["llm/router_engine/2.0.1", "1", "retrieval/router_engine/2.0.1", "ok"],
        ["retrieval/router_engine/2.0.1", "1", "", "ok"],
    ]
    choice, found = mine.itertuples()
    assert choice.timeout_s == pytest.approx(choice.remaining_at_start_s / 2)
    assert found.remaining_at_start_s - found.timeout_s == pytest.approx(choice.timeout_s)
    assert choice.output_tokens > 0


@pytest.mark.parametrize("tools_data", [False, True])
def test_a_router_in_the_runtime_context_of_the_whole_graph_reaches_the_tool_and_no_checkpoint(tools_data: bool):
    found_in = replace(resources(), router_injection=True)
    engine = engine_of(found_in.index, found_in.client, in_turn(choosing("hybrid")))
    compiled, noted = docmind(scripted_model(), found_in, checkpointer=InMemorySaver()), recorder()
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 40}
    context: dict[str, Any] = {"router_engine": engine}
    with recording(noted):
        state = compiled.invoke(asked(SIMPLE), config, context={"tools_data": context} if tools_data else context)
    assert [(one["router_used"], one["strategy"]) for one in details(noted, "retrieved")] == [(True, "hybrid")]
    assert state["documents"][0]["id"] == "lock#1"
    assert "lock#1" in state["messages"][-1].text
    history = list(compiled.get_state_history(config))
    assert history
    assert all("RouterEngine" not in repr(snapshot) for snapshot in history)
    found_in.client.close()
