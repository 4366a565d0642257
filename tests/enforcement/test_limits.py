"""Limits of calls: first token, idle, total, for each client, streamed and not, on both clocks (limits.md 1)."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from limited_clients import (
    ASYNC,
    BLOCKING,
    OFTEN,
    Ask,
    asking,
    silent_server,
    with_aiohttp,
    with_async_openai,
    with_httpx,
    with_requests,
)
from often import often
from stub_server import StubServer

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.limits import LimitsOfCall
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.network.call_limits import TokenFinder, asks_for_generation
from docmind_lab.network.clients.aiohttp import AiohttpAdapter

# A machine of two shared cores pauses for this long at most, give or take what a test can allow itself.
PAUSE_S = 0.5
LIMITS = dl.Limits(first_token_s=0.3, idle_s=0.2, total_s=0.7)
PROPAGATING = ("A", "B:propagate", "C:propagate", "D:propagate", "E", "F:propagate")
# How the server answers, streamed or not → the limit that is over first, and when.
WAYS = {
    "never": ("first_token", 0.3),
    "keeps_alive": ("first_token", 0.3),
    "stops": ("idle", 0.2),
    "trickles": ("total", 0.7),
}


OF_SDK = ("APITimeoutError", "ReadTimeout")
# As each library has it for a body that stopped, and for a head that did not come.
OWN_TIMEOUTS: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys([*BLOCKING, *ASYNC], OF_SDK),
    with_requests: ("ReadTimeout", "ConnectionError"),
    with_aiohttp: ("SocketTimeoutError",),
}


@pytest.mark.wall
@pytest.mark.parametrize("ask", often([*BLOCKING, *ASYNC], *OFTEN))
def test_a_call_is_cut_by_the_limit_that_is_over_and_its_client_has_its_own_timeout(
    ask: Ask, stub: Callable[..., StubServer]
) -> None:
    url, ways = stub(silent_server).url, list(product(WAYS, (False, True)))
    agents = [dl.enforce(asking(ask, url, *way), 20, "E", limits=LIMITS) for way in ways]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(agent.ainvoke({"path": ""}) for agent in agents))

    for result, (way, _) in zip(asyncio.run(all_at_once()), ways, strict=True):
        limit, after_s = WAYS[way]
        (cut,) = result.calls_cut
        assert (cut.limit, cut.role, cut.host) == (limit, "ask", "127.0.0.1")
        assert after_s - 0.01 <= cut.after_s < after_s + PAUSE_S
        # The run goes on: the node had an error of its client, and no cut.
        assert (result.outcome, result.requests_cut) == ("answered", 0)
        assert result.state["log"][0] in OWN_TIMEOUTS[ask]


@pytest.mark.wall
@pytest.mark.parametrize("ask", often([*BLOCKING, *ASYNC], *OFTEN))
def test_the_wait_for_a_connection_is_part_of_the_wait_for_the_first_token(ask: Ask, deaf_port: int) -> None:
    limits = dl.Limits(first_token_s=9, by_role={"ask": LIMITS})
    agent = dl.enforce(asking(ask, f"http://127.0.0.1:{deaf_port}"), 20, "E", limits=limits)
    result = agent.invoke({"path": ""})
    assert "1 call cut by the limit first token" in repr(result)
    (cut,) = result.calls_cut
    assert cut.limit == "first_token"
    assert 0.29 <= cut.after_s < 0.3 + PAUSE_S


@pytest.mark.wall
@pytest.mark.parametrize("alternative", PROPAGATING)
def test_each_alternative_that_propagates_holds_limits_of_a_node_in_production(
    alternative: str, stub: Callable[..., StubServer]
) -> None:
    limits = dl.Limits(first_token_s=9, by_role={"ask": LIMITS})
    agent = dl.enforce(asking(with_httpx, stub(silent_server).url, "never"), 20, alternative, limits=limits)
    result = agent.invoke({"path": ""})
    assert [(cut.limit, result.outcome) for cut in result.calls_cut] == [("first_token", "answered")]


@pytest.mark.parametrize(
    ("ask", "stream"),
    often([*product([*BLOCKING, *ASYNC], (False, True))], *((ask, place % 2 == 0) for place, ask in enumerate(OFTEN))),
)
def test_each_client_is_cut_at_the_instant_in_virtual_time_under_each_alternative_that_propagates(
    ask: Ask, stream: bool
) -> None:
    arms = [f"{arm}+limits:first_token=3/idle=2" for arm in PROPAGATING]
    system = dl.graph(asking(ask, "http://model.example", "m", stream), [{"log": []}])
    world = dl.World(faults="hang:ask")
    calls = dl.compare(system, 20, alternatives=arms, runs=1, workers=1, world=world).calls
    client = calls[calls["seen_from"] == "client"]
    assert len(client) == len(arms)
    assert set(zip(client["ended_at_s"], client["cut_by"], client["outcome"], strict=True)) == {
        (3.0, "first_token", "timeout")
    }


def test_a_call_without_limits_says_whether_the_deadline_cut_it() -> None:
    system = dl.graph(asking(with_async_openai, "http://model.example"), [{"log": []}])
    calls = dl.compare(system, 5, alternatives="A,C", runs=1, workers=1, world=dl.World(faults="hang:ask")).calls
    assert list(calls.loc[calls["seen_from"] == "client", "cut_by"]) == ["deadline", ""]


def test_under_f_limits_are_those_of_langgraph_for_a_node() -> None:
    system = dl.graph(asking(with_async_openai, "http://model.example"), [{"log": []}])
    arms = ["F+limits:idle=3", "F+limits:idle=9/total=4", "F"]
    study = dl.compare(system, 20, alternatives=arms, runs=1, workers=1, world=dl.World(faults="hang:ask"))
    assert [round(at_s, 3) for at_s in study.runs["returned_at_s"]] == [3.0, 4.0, 20.0]


@pytest.mark.wall
def test_in_production_under_f_the_result_names_the_node_that_langgraph_cut(stub: Callable[..., StubServer]) -> None:
    graph = asking(with_async_openai, stub(silent_server).url, "never")
    result = dl.enforce(graph, 20, "F", limits=dl.Limits(idle_s=0.2)).invoke({"path": ""})
    assert [(cut.limit, cut.role) for cut in result.calls_cut] == [("idle", "ask")]
    assert (result.outcome, result.stop_reason) == ("timed_out", "node_timeout")


# ---- what the limits are


def test_limits_are_read_from_the_name_of_an_arm_and_written_as_it() -> None:
    limits = dl.Limits(first_token_s=8, idle_s=5, by_role={"judge": dl.Limits(total_s=3)})
    text = "limits:first_token=8/idle=5/total@judge=3"
    assert TimePolicies.parse(text).limits == limits
    assert TimePolicies(limits).text == text
    assert repr(limits) == "dl.Limits(first_token_s=8, idle_s=5, by_role={'judge': dl.Limits(total_s=3)})"


def test_a_role_has_its_own_limits_in_place_of_those_of_all_and_a_tool_has_one_for_the_whole() -> None:
    limits = dl.Limits(idle_s=5, tool_s=9, by_role={"judge": dl.Limits(idle_s=1, total_s=3)})
    assert limits.of_call("judge", is_model=True) == limits.of_call("outer/judge", is_model=True)
    assert limits.of_call("judge", is_model=True) == LimitsOfCall(idle_s=1, total_s=3)
    assert limits.of_call("other", is_model=True) == LimitsOfCall(idle_s=5)
    assert limits.of_call("judge", is_model=False) == LimitsOfCall(total_s=9)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: dl.Limits(idle_s=0), "idle_s must be a finite number of seconds above 0, not 0"),
        (lambda: dl.Limits(by_role={"a": 3}), r"by_role\['a'\] must be Limits"),  # type: ignore[dict-item]
        (lambda: TimePolicies.parse("limits"), "give limits by name, such as limits:first_token=8/idle=5"),
        (lambda: TimePolicies.parse("limits:idle=soon"), "give idle in seconds"),
        (lambda: dl.enforce(asking(with_httpx, ""), limits=dl.Limits()), "limits has no limit"),
        (lambda: dl.enforce(asking(with_httpx, ""), 20, "B", limits=LIMITS), "name an alternative that propagates it"),
        (lambda: dl.enforce(asking(with_httpx, ""), 20, "C", limits=LIMITS), "name an alternative that propagates it"),
        (lambda: dl.enforce(asking(with_httpx, ""), 20, "D", limits=LIMITS), "name an alternative that propagates it"),
        (lambda: dl.enforce(asking(with_httpx, ""), 20, "F", limits=LIMITS), "knows no first token and no tool"),
    ],
)
def test_limits_that_cannot_be_are_refused_by_name(made: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        made()


SSE = functools.partial(TokenFinder, {b"content-type": b"text/event-stream; charset=utf-8"})


@pytest.mark.parametrize(
    ("finder", "part", "has_token"),
    [
        (SSE(), b'data: {"choices": []}\n', True),
        (SSE(), b'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n', True),
        (SSE(), b": OPENROUTER PROCESSING\n\n", False),
        (SSE(), b'event: ping\ndata: {"type": "ping"}\n\n', False),
        (SSE(), b'data: {"type":"message_start"}\n', False),
        (SSE(), b'data: {"type":"response.created"}\n', False),
        (SSE(), b'data: {"type":"response.output_item.added"}\n', False),
        (SSE(), b'data: {"choices":[{"delta":{"role":"assistant","content":"","refusal":null}}]}\n', False),
        (SSE(), b'data: {"choices":[{"delta":{"role":"assistant","content":"Hi"}}]}\n', True),
        (SSE(), b'data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{"index":0}]}}]}\n', True),
        (SSE(), b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n', True),
        (SSE(), b'data: {"choices', False),
        (TokenFinder({b"content-type": b"application/json; charset=utf-8"}), b" \r\n", False),
        (TokenFinder({b"content-type": b"application/x-ndjson"}), b" {", True),
        (TokenFinder({b"content-type": b"text/plain"}), b" ", True),
        # What is compressed cannot be read here.
        (TokenFinder({b"content-type": b"text/event-stream", b"content-encoding": b"gzip"}), b"\x1f", True),
    ],
)
def test_a_token_is_an_event_that_holds_one_and_no_keep_alive(
    finder: TokenFinder, part: bytes, has_token: bool
) -> None:
    assert finder.feed(part) == has_token


def test_an_event_that_comes_in_two_parts_is_one_token() -> None:
    finder = SSE()
    assert [finder.feed(part) for part in (b'data: {"choi', b'ces": []}\n', b"\n")] == [False, True, False]


@pytest.mark.parametrize(
    ("path", "is_model"),
    [
        ("/v1/chat/completions", True),
        ("/v1/messages", True),
        ("/v1beta/models/gemini-3:streamGenerateContent", True),
        ("/api/chat", True),
        ("/v1/chat", False),
        ("/model/m/converse-stream", True),
        ("/functions/f/invoke", False),
        ("/v1/embeddings", False),
        ("/collections/docs/points/query", False),
        ("/search", False),
    ],
)
def test_what_asks_for_generation_is_judged_by_its_path(path: str, is_model: bool) -> None:
    assert asks_for_generation(path) == is_model


@pytest.mark.wall
def test_a_limit_is_noted_once_though_two_adapters_lie_one_above_the_other(stub: Callable[..., StubServer]) -> None:
    """As after a run of the lab over sockets, below whose hooks production has installed its own."""
    other = AiohttpAdapter()
    other.hold()
    try:
        result = dl.enforce(asking(with_aiohttp, stub(silent_server).url, "never"), 20, "E", limits=LIMITS).invoke({})
    finally:
        other.remove()
    assert [cut.limit for cut in result.calls_cut] == ["first_token"]
