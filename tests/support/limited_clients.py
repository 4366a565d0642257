"""A model server that is silent in every way, a call to it by each client, streamed or not, and a graph that calls."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import anthropic
import httpx
import openai
import requests
from chains import chain
from held_graphs import Notes
from stub_server import StubConnection, StubRequest

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\nconnection: close\r\n\r\n"
_TOKEN = {
    "/v1/chat/completions": {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": "a"}}],
    },
    "/v1/messages": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
}
_PAUSE_S = 0.02


def silent_server(request: StubRequest, connection: StubConnection) -> None:
    """Answers as the request's model says: "never", "keeps_alive", "stops" after two tokens, or "trickles"."""
    asked = json.loads(request.body)
    way, streams = asked["model"], asked.get("stream")
    event = b"event: content_block_delta\ndata: " + json.dumps(_TOKEN[request.path]).encode() + b"\n\n"
    token = event if streams else b"{"
    of_stream = b": still here\n\n" if request.path.endswith("completions") else b'data: {"type": "ping"}\n\n'
    keep_alive = of_stream if streams else b" "
    if way != "never":
        connection.send(_HEAD % (b"text/event-stream" if streams else b"application/json"))
    if way == "stops":
        for _ in range(2):
            connection.send(token)
            connection.pause(_PAUSE_S)
    while True:
        if way == "trickles":
            connection.send(token)
        elif way in ("keeps_alive", "stops"):
            connection.send(keep_alive)
        connection.pause(_PAUSE_S)


def _asked(model: str, stream: bool) -> dict[str, Any]:
    return {"model": model, "stream": stream, "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}


def with_openai(url: str, model: str, stream: bool) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        answer = client.chat.completions.create(**_asked(model, stream))
        for _ in answer if stream else ():
            pass


def with_anthropic(url: str, model: str, stream: bool) -> None:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        answer = client.messages.create(**_asked(model, stream))
        for _ in answer if stream else ():
            pass


def with_httpx(url: str, model: str, stream: bool) -> None:
    with (
        httpx.Client(timeout=None, trust_env=False) as client,
        client.stream("POST", f"{url}/v1/chat/completions", json=_asked(model, stream)) as answer,
    ):
        for _ in answer.iter_lines():
            pass


def with_requests(url: str, model: str, stream: bool) -> None:
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(f"{url}/v1/chat/completions", json=_asked(model, stream), stream=stream)
        for _ in answer.iter_lines():
            pass


async def with_async_openai(url: str, model: str, stream: bool) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        answer = await client.chat.completions.create(**_asked(model, stream))
        if stream:
            async for _ in answer:
                pass


async def with_async_anthropic(url: str, model: str, stream: bool) -> None:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        answer = await client.messages.create(**_asked(model, stream))
        if stream:
            async for _ in answer:
                pass


async def with_aiohttp(url: str, model: str, stream: bool) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/v1/chat/completions", json=_asked(model, stream)) as answer:
            async for _ in answer.content:
                pass


Ask = Callable[[str, str, bool], Any]
BLOCKING: list[Ask] = [with_openai, with_anthropic, with_httpx, with_requests]
ASYNC: list[Callable[[str, str, bool], Awaitable[None]]] = [with_async_openai, with_async_anthropic, with_aiohttp]
# One of each adapter, and of each way to wait; the other SDKs stand on the same clients.
OFTEN: list[Ask] = [with_openai, with_requests, with_async_openai, with_aiohttp]


def asking(ask: Ask, url: str, model: str = "m", stream: bool = False) -> Any:
    """A graph of one node, which asks a model and notes the error that its client raises."""

    def noted(error: BaseException | None) -> Notes:
        return {"log": [type(error).__name__ if error else "answered"]}

    def blocking(state: Notes) -> Notes:
        try:
            return noted(ask(url, model, stream))
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            return noted(error)

    async def awaiting(state: Notes) -> Notes:
        try:
            return noted(await ask(url, model, stream))
        except Exception as error:  # noqa: BLE001 - each client has errors of its own
            return noted(error)

    return chain(Notes, ask=awaiting if ask in ASYNC else blocking).compile()
