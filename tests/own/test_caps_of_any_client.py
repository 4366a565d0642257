"""With services of the graph's own, a cap counts requests of every library, and refuses what it cannot see."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any

import aiohttp
import pytest
import requests
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from often import often
from own_runs import graph_of, services
from typing_extensions import TypedDict

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.network.grpc_channels import grpc_targets


class State(TypedDict, total=False):
    url: str
    answer: Any


def body() -> dict[str, Any]:
    return {"model": "docmind-scripted", "messages": [{"role": "user", "content": "What is yield?"}]}


def by_requests(state: State) -> State:
    with requests.Session() as session:
        return {"answer": [session.post(state["url"], json=body(), timeout=30).json()["object"] for _ in range(2)]}


def by_urllib(state: State) -> State:
    request = urllib.request.Request(state["url"], json.dumps(body()).encode(), {"content-type": "application/json"})
    answers = []
    for _ in range(2):
        with urllib.request.urlopen(request, timeout=30) as response:
            answers.append(json.load(response)["object"])
    return {"answer": answers}


async def by_aiohttp(state: State) -> State:
    answers = []
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.post(state["url"], json=body()) as response:
                answers.append((await response.json())["object"])
    return {"answer": answers}


def by_a_model_in_this_process(state: State) -> State:
    return {"answer": FakeListChatModel(responses=["yes"]).invoke("a").content}


def compared(node: Any, url: str, **options: Any) -> dl.Study:
    options = {"runs": 4, "alternatives": "unguarded", "decision_timeout_s": 30} | options
    graph = graph_of(schema=State, ask=node)
    return dl.compare(graph=graph, inputs=[{"url": url}], services="own", clock="wall", **options)


@pytest.mark.wall
@pytest.mark.parametrize("node", often([by_requests, by_urllib, by_aiohttp], by_requests))
def test_no_request_past_the_cap_is_sent_whatever_library_sends_it(node: Any) -> None:
    with services() as here:
        # Two runs warm up, with two requests each; so one run of the four is left, and half of another.
        study = compared(node, f"{here.addresses.openai_base_url}/chat/completions", max_requests=7)
        assert len(here.door.log.rows("")) == 7
    assert study.manifest["sent"]["requests"] == 7
    assert study.manifest["sent"]["requests_with_estimated_tokens"] == 0
    assert study.manifest["sent"]["tokens"] > 0
    assert study.manifest["ended_by"] == "max_requests: 7 requests were sent"
    assert list(study.runs["llm_calls"]) == [2]
    assert set(study.calls["outcome"].astype("str")) == {"ok"}


@pytest.mark.wall
def test_a_capped_study_of_a_model_whose_requests_are_not_seen_ends_with_one_line() -> None:
    with pytest.raises(ConfigurationError, match="the model of node ask answered, and no HTTP request of it was seen"):
        compared(by_a_model_in_this_process, "", max_requests=5)


@pytest.mark.full
def test_a_cap_is_refused_beside_an_open_grpc_channel_before_anything_is_sent() -> None:
    grpc = pytest.importorskip("grpc")
    asked: list[str] = []
    with grpc.insecure_channel("127.0.0.1:9"):
        with pytest.raises(ConfigurationError, match=r"a gRPC channel to dns:///127.0.0.1:9 is open.*transport='rest'"):
            compared(lambda state: asked.append(state["url"]), "", max_requests=5)
    assert not asked
    assert grpc_targets() == [], "it is closed"


@pytest.mark.full
def test_a_grpc_channel_that_a_node_opens_ends_a_capped_study() -> None:
    grpc = pytest.importorskip("grpc")
    opened: list[Any] = []

    def ask(state: State) -> State:
        opened.append(grpc.insecure_channel("models.example:443"))
        return {"answer": "yes"}

    try:
        with pytest.raises(ConfigurationError, match=r"a gRPC channel to dns:///models\.example:443 is open"):
            compared(ask, "", max_requests=5)
        # Two runs warm up, and the second of the four may have begun when the first is looked at.
        assert len(opened) <= 4
    finally:
        for channel in opened:
            channel.close()


def test_channels_of_event_loops_are_found_and_those_to_collectors_are_not() -> None:
    aio = pytest.importorskip("grpc.aio")

    async def targets() -> list[str]:
        async with aio.insecure_channel("models.example:443"), aio.insecure_channel("127.0.0.1:4317"):
            return grpc_targets()

    assert [target.removeprefix("dns:///") for target in asyncio.run(targets())] == ["models.example:443"]


@pytest.mark.full
@pytest.mark.wall
def test_a_deadline_cuts_a_request_that_its_library_sends_itself() -> None:
    for node in (by_requests, by_aiohttp):
        with services("hang:*") as here:
            url = f"{here.addresses.openai_base_url}/chat/completions"
            study = compared(node, url, runs=1, alternatives="A", decision_timeout_s=1.0)
        (run,) = study.runs.itertuples()
        assert run.outcome == "timed_out"
        # A busy machine of two cores wakes a thread within this.
        assert run.caller_overrun_s < 0.4
