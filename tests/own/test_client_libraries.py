"""Requests of other libraries in runs of a user's graph: answered, recorded and cut as those of httpx."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import aiohttp
import httplib2
import pytest
import requests
from flat_compare import compare_by
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from often import often
from own_runs import State, graph_of, measured_on_the_wall, services, simulated

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, NotSimulated
from docmind_lab.experiments.recordings.caps import grpc_targets
from docmind_lab.systems.own import unsimulated
from docmind_lab.systems.own.own_requests import drop_hooks, keep_hooks

URL = "https://api.openai.com/v1/chat/completions"


class Asking(State, total=False):
    url: str


def body(*, stream: bool = False) -> dict[str, Any]:
    return {"model": "any", "messages": [{"role": "user", "content": "What is yield?"}], "stream": stream}


def by_requests(state: Asking) -> State:
    response = requests.post(state.get("url", URL), json=body(), timeout=30)
    response.raise_for_status()
    return {"answer": response.json()["choices"][0]["message"]["content"]}


def by_requests_streaming(state: State) -> State:
    with requests.post(URL, json=body(stream=True), stream=True, timeout=30) as response:
        return {"answer": _said([line.decode() for line in response.iter_lines()])}


def by_urllib(state: Asking) -> State:
    url, headers = state.get("url", URL), {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body()).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return {"answer": json.load(response)["choices"][0]["message"]["content"]}


async def by_aiohttp(state: Asking) -> State:
    url = state.get("url", URL)
    async with aiohttp.ClientSession() as session, session.post(url, json=body()) as response:
        return {"answer": (await response.json())["choices"][0]["message"]["content"]}


async def by_aiohttp_streaming(state: State) -> State:
    async def parts() -> Any:
        yield json.dumps(body(stream=True)).encode()

    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession() as session, session.post(URL, data=parts(), headers=headers) as response:
        return {"answer": _said([line.decode() async for line in response.content])}


def by_httplib2(state: State) -> State:
    _, text = httplib2.Http(timeout=30).request(URL, "POST", json.dumps(body()), {"content-type": "application/json"})
    return {"answer": json.loads(text)["choices"][0]["message"]["content"]}


def _said(lines: list[str]) -> str:
    events = [line.removeprefix("data: ").strip() for line in lines if line.startswith("data: ")]
    deltas: Iterator[Any] = (json.loads(event)["choices"] for event in events if event != "[DONE]")
    return "".join(choices[0]["delta"].get("content") or "" for choices in deltas if choices)


NODES = [by_requests, by_requests_streaming, by_urllib, by_httplib2, by_aiohttp, by_aiohttp_streaming]


def run(node: Any, alternatives: str, faults: str = "none", timeout_s: float = 10.0) -> Any:
    options = {"alternatives": alternatives, "decision_timeout_s": timeout_s, "faults": faults, "profile": "fast"}
    return simulated(graph_of(schema=Asking, fetch=node), **options)


def client_calls(measured: Any) -> list[Any]:
    return [call for call in measured.calls if call.seen_from == "client"]


@pytest.mark.parametrize("node", NODES)
def test_each_library_is_answered_in_virtual_time_while_runs_on_the_wall_clock_are_watched_too(node: Any) -> None:
    keep_hooks(None)
    try:
        (measured,) = run(node, "A")
    finally:
        drop_hooks(None)
    assert measured.run.outcome == "answered"
    (call,) = client_calls(measured)
    assert (call.kind, call.role, call.outcome) == ("llm", "fetch", "ok")
    assert measured.run.returned_at_s > 0.05


STREAMING = [(node, "trickle:*") for node in (by_requests_streaming, by_aiohttp_streaming)]


@pytest.mark.parametrize(
    ("node", "fault"),
    often(
        [(node, fault) for node in NODES for fault in ("hang:*", "trickle:*")],
        *[(node, "hang:*") for node in NODES],
        *STREAMING,
    ),
)
def test_a_request_that_hangs_or_trickles_is_cut_at_the_deadline_whatever_library_sends_it(
    node: Any, fault: str
) -> None:
    (measured,) = run(node, "A", fault, 2.0)
    assert (measured.run.outcome, measured.run.returned_at_s) == ("timed_out", 2.0)
    (call,) = client_calls(measured)
    assert call.outcome == "timeout"


@pytest.mark.parametrize(
    ("node", "error"),
    [
        (by_requests, "ChunkedEncodingError"),
        (by_urllib, "ConnectionResetError"),
        (by_aiohttp, "ClientPayloadError"),
    ],
)
def test_a_broken_response_is_the_librarys_own_error(node: Any, error: str) -> None:
    (measured,) = run(node, "unguarded", "disconnect:*")
    assert (measured.run.outcome, measured.run.error_type) == ("failed", error)


def test_a_timeout_of_a_library_ends_a_hang_in_virtual_time_by_its_own_error() -> None:
    def impatient(state: State) -> State:
        requests.post(URL, json=body(), timeout=1.5)
        return {}

    (measured,) = run(impatient, "unguarded", "hang:*")
    assert (measured.run.outcome, measured.run.error_type) == ("failed", "ReadTimeout")
    assert measured.run.returned_at_s == 1.5


def test_retries_of_urllib3_are_attempts_that_wait_in_virtual_time() -> None:
    def patient(state: State) -> State:
        with requests.Session() as session:
            retries = requests.packages.urllib3.Retry(  # type: ignore[attr-defined]
                total=3, status_forcelist=[500], allowed_methods=None, backoff_factor=1.0
            )
            session.mount("https://", requests.adapters.HTTPAdapter(max_retries=retries))
            return {"answer": session.post(URL, json=body(), timeout=30).text}

    (measured,) = run(patient, "unguarded", "http_500:*")
    assert measured.run.outcome == "failed"
    assert len(client_calls(measured)) == 4
    # Waits of 0, 2 and 4 seconds, as urllib3 has it.
    assert 6.0 <= measured.run.returned_at_s < 6.5


@pytest.mark.wall
@pytest.mark.parametrize("node", [by_requests, by_aiohttp_streaming])
def test_each_library_is_answered_by_the_simulated_services_over_sockets(node: Any) -> None:
    with services() as here:
        (measured,) = measured_on_the_wall(here, graph_of(schema=Asking, fetch=node), "A", 30.0)
    assert measured.run.outcome == "answered"
    sides = {call.seen_from: call.call_id for call in measured.calls}
    assert sides["client"] == sides["server"]


def test_the_libraries_are_as_they_were_after_a_run() -> None:
    before = (vars(urllib.request.http.client.HTTPConnection)["connect"], vars(aiohttp.ClientRequest)["send"])  # type: ignore[attr-defined]
    run(by_requests, "A")
    after = (vars(urllib.request.http.client.HTTPConnection)["connect"], vars(aiohttp.ClientRequest)["send"])  # type: ignore[attr-defined]
    assert after == before


def test_a_client_below_which_nothing_can_be_watched_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    primp: Any = ModuleType("primp")
    primp.Client = lambda **_: pytest.fail("the library's own client was made")
    monkeypatch.setitem(sys.modules, "primp", primp)
    unsimulated._compiled.cache_clear()

    def search(state: State) -> State:
        with contextlib.suppress(Exception):
            primp.Client(timeout=3).get("https://example.org")
        return {"answer": "none"}

    try:
        with pytest.raises(NotSimulated, match=r"primp: a client in Rust, .* has no virtual time"):
            run(search, "A")
    finally:
        unsimulated._compiled.cache_clear()


# ---- with services of the graph's own, a cap counts requests of every library, and refuses what it cannot see


def twice(node: Any) -> Any:
    async def both_async(state: Asking) -> State:
        return [await node(state) for _ in range(2)][-1]

    def both(state: Asking) -> State:
        return [node(state) for _ in range(2)][-1]

    return both_async if inspect.iscoroutinefunction(node) else both


def by_a_model_in_this_process(state: State) -> State:
    return {"answer": FakeListChatModel(responses=["yes"]).invoke("a").content}


def compared(node: Any, url: str, **options: Any) -> dl.Study:
    options = {"runs": 4, "alternatives": "unguarded", "decision_timeout_s": 30} | options
    graph = graph_of(schema=Asking, ask=node)
    return compare_by(**options, graph=graph, inputs=[{"url": url}], services="own", clock="wall")


@pytest.mark.wall
@pytest.mark.parametrize("node", often([by_requests, by_urllib, by_aiohttp], by_requests))
def test_no_request_past_the_cap_is_sent_whatever_library_sends_it(node: Any) -> None:
    with services() as here:
        # Two runs warm up, with two requests each; so one run of the four is left, and half of another.
        study = compared(twice(node), f"{here.addresses.openai_base_url}/chat/completions", max_requests=7)
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

    def ask(state: Asking) -> State:
        opened.append(grpc.insecure_channel("models.example:443"))
        if len(opened) > 3:
            time.sleep(1.0)  # the second run is under way while the first is looked at, on a busy machine too
        return {"answer": "yes"}

    try:
        with pytest.raises(ConfigurationError, match=r"a gRPC channel to dns:///models\.example:443 is open"):
            compared(ask, "", max_requests=5, workers=1)
        # Two runs warm up, and the second of the four has begun.
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
