"""Graphs of one node whose limits are known by construction: what they come to by design, and under two faults."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import anthropic
import httpx
import openai
import requests
import tenacity
from hung_graphs import State, ask_tavily, chat_model, one_node
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langgraph.types import RetryPolicy, TimeoutPolicy
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

ADDRESS = "https://models.example.com/v1"
CHAT = f"{ADDRESS}/chat/completions"
ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}
NEVER = math.inf


@dataclass(frozen=True)
class Expected:
    """What is known of a graph: seconds of its node by design, in a hang and in a trickle, requests of the hang.

    call_s: what one call of its client comes to by design. run_s: of one run, if it has one. asked: its input.
    """

    name: str
    graph: Any = field(hash=False)
    call_s: float
    designed_s: float
    hang_s: float
    requests: int
    trickle_s: float
    run_s: float | None = None
    asked: Any = field(default_factory=lambda: {"question": "Why?"}, hash=False)


def node_of(ask: Callable[[], Any], **options: Any) -> Any:
    """Return a graph of one node, sync or async as what it does is."""

    async def node(state: State) -> State:
        return {"answer": await ask()}

    return one_node(node if asyncio.iscoroutinefunction(ask) else lambda state: {"answer": ask()}, **options)


def openai_node(timeout_s: float, retries: int, **options: Any) -> Any:
    """Return a graph of one async node that asks a model once."""

    async def ask() -> Any:
        client = openai.AsyncOpenAI(base_url=ADDRESS, api_key="k", timeout=timeout_s, max_retries=retries)
        return await client.chat.completions.create(**ASKED)

    return node_of(ask, **options)


def httpx_in_a_loop() -> Any:
    def ask() -> Any:
        for _ in range(3):
            try:
                return httpx.post(CHAT, json=ASKED, timeout=5).json()
            except httpx.TimeoutException as error:
                last = error
        raise last

    return node_of(ask)


async def ask_aiohttp() -> Any:
    timeout = aiohttp.ClientTimeout(total=10, sock_read=60)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.post(CHAT, json=ASKED) as response:
        return await response.json()


def ask_anthropic() -> Any:
    client = anthropic.Anthropic(base_url="https://api.anthropic.com", api_key="k", timeout=30, max_retries=1)
    return client.messages.create(max_tokens=9, **ASKED)


@tenacity.retry(stop=tenacity.stop_after_attempt(5) | tenacity.stop_after_delay(30), wait=tenacity.wait_fixed(1))
def ask_openai_twice() -> Any:
    client = openai.OpenAI(base_url=ADDRESS, api_key="k", timeout=8, max_retries=1)
    return client.chat.completions.create(**ASKED)


def two_calls_in_a_short_step() -> Any:
    async def ask() -> Any:
        async with httpx.AsyncClient(timeout=6) as client:
            try:
                await client.post("https://api.tavily.com/search", json={"query": "q"})
            except httpx.TimeoutException:
                await asyncio.sleep(0)
        return await chat_model(9).ainvoke("Why?")

    graph = node_of(ask)
    graph.step_timeout = 12
    return graph


@tenacity.retry(
    stop=tenacity.stop_after_attempt(4),
    wait=tenacity.wait_exponential(max=3) + tenacity.wait_chain(tenacity.wait_fixed(2), tenacity.wait_fixed(1)),
)
def ask_after_growing_waits() -> Any:
    return ask_tavily(4)


def ask_with_retries_of_urllib3(**options: Any) -> Any:
    with requests.Session() as session:
        session.mount("https://", HTTPAdapter(max_retries=Retry(**options)))
        return session.post(CHAT, json=ASKED, timeout=(3, 12)).json()


def retried_by_urllib3(**options: Any) -> Any:
    return node_of(lambda: ask_with_retries_of_urllib3(**options))


IDLE = TimeoutPolicy(idle_timeout=6)
TWICE = RetryPolicy(max_attempts=2, initial_interval=1, jitter=False)
THRICE = RetryPolicy(max_attempts=3, initial_interval=2, jitter=False)
MIDDLEWARE = ModelRetryMiddleware(max_retries=1, initial_delay=2, jitter=False)
AGENT = create_agent(chat_model(6), middleware=[MIDDLEWARE])
GRAPHS = [
    Expected("openai in a short node", openai_node(55, 2, timeout=20), 166.5, 20, 20, 1, 20),
    Expected("httpx in a loop", httpx_in_a_loop(), 5, 5, 15, 3, NEVER),
    Expected("requests", node_of(lambda: requests.post(CHAT, json=ASKED).json()), NEVER, NEVER, NEVER, 1, NEVER),
    Expected("idle", openai_node(30, 0, timeout=IDLE, retry_policy=TWICE), 30, 13, 13, 2, 13),
    Expected("aiohttp with a total", node_of(ask_aiohttp), 10, 10, 10, 1, 10),
    Expected("anthropic in a short run", node_of(ask_anthropic), 60.5, 60.5, 60.5, 2, NEVER, 20),
    Expected("tenacity around openai", node_of(ask_openai_twice), 34, 34, 34, 4, NEVER, 30),
    Expected("RetryPolicy", node_of(lambda: ask_tavily(4), retry_policy=THRICE), 4, 18, 18, 3, NEVER, 15),
    Expected("two calls in a short step", two_calls_in_a_short_step(), 9, 15, 12, 2, 12),
    Expected("a node longer than its run", openai_node(3, 0, timeout=30), 3, 3, 3, 1, 30, 20),
    Expected("waits that grow", node_of(ask_after_growing_waits), 26, 26, 26, 4, NEVER),
    Expected("urllib3", retried_by_urllib3(total=2, read=2, allowed_methods=None), 36, 36, 36, 3, NEVER),
    Expected("its waits", retried_by_urllib3(total=3, allowed_methods=None, backoff_factor=0.5), 51, 51, 51, 4, NEVER),
    Expected("no second post", retried_by_urllib3(total=3, backoff_factor=0.5), 12, 12, 12, 1, NEVER),
    Expected("no second read", retried_by_urllib3(total=3, read=1, allowed_methods=None), 24, 24, 24, 2, NEVER),
    Expected("middleware of an agent", AGENT, 14, 14, 14, 2, NEVER, asked={"messages": ["Why?"]}),
]
