"""Facts about the clients that this package leans on: a failure here means that a release has changed one.

They are used as a user's program would, without the seam.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import openai
import pytest
from chat_replies import MESSAGES, at_once, reply, silent
from langchain_openai import ChatOpenAI
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException


def failing(status: int, headers: str = ""):
    def answer(request, connection) -> None:
        connection.send(reply(b"{}", status, headers))

    return answer


@contextlib.contextmanager
def openai_client(url: str, **options: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused", **options) as client:
        yield client


def chat(url: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="unused", **options)


# ---- which HTTP library is under which client


def test_openai_talks_through_httpx2(stub):
    assert issubclass(openai.DefaultHttpxClient, httpx2.Client)
    assert issubclass(openai.DefaultAsyncHttpxClient, httpx2.AsyncClient)
    server = stub(at_once)
    server.close()
    with openai_client(server.url, max_retries=0) as client, pytest.raises(openai.APIConnectionError) as caught:
        client.models.list()
    assert isinstance(caught.value.__cause__, httpx2.TransportError)


def test_qdrant_client_talks_through_httpx(stub):
    server = stub(at_once)
    server.close()
    with (
        contextlib.closing(QdrantClient(url=server.url, check_compatibility=False)) as client,
        pytest.raises(ResponseHandlingException) as caught,
    ):
        client.get_collections()
    assert isinstance(caught.value.source, httpx.TransportError)


# ---- timeouts


@pytest.mark.wall
def test_a_timeout_of_the_qdrant_client_is_rounded_up_to_whole_seconds(stub):
    server = stub(silent)
    with contextlib.closing(QdrantClient(url=server.url, timeout=0.2, check_compatibility=False)) as client:
        begun_at = time.monotonic()
        with pytest.raises(ResponseHandlingException):
            client.get_collections()
    # Not before the whole second, and well before the next one; shared cores may pause for a few hundred ms.
    assert 0.99 <= time.monotonic() - begun_at < 1.8


def test_a_qdrant_call_takes_no_timeout_below_a_second(stub):
    server = stub(at_once)
    with (
        contextlib.closing(QdrantClient(url=server.url, check_compatibility=False)) as client,
        pytest.raises(ValueError, match=r"(?i)int"),
    ):
        client.query_points("docs", query=[1.0], timeout=0.5)
    assert server.requests == []


def test_a_chat_model_takes_a_timeout_per_call_and_ignores_a_copied_one(stub):
    server = stub(at_once)
    model = chat(server.url, timeout=9.0)
    model.invoke("Why?", timeout=0.75)
    model.model_copy(update={"request_timeout": 0.75}).invoke("Why?")
    sent = [request.headers["x-stainless-read-timeout"] for request in server.requests]
    assert [float(seconds) for seconds in sent] == [0.75, 9.0]


# ---- retries


def test_a_chat_model_that_is_told_nothing_tries_three_times(stub):
    assert ChatOpenAI.model_fields["max_retries"].default is None
    server = stub(failing(500, "retry-after-ms: 1\r\n"))
    with pytest.raises(openai.InternalServerError):
        chat(server.url).invoke("Why?")
    assert len(server.requests) == 3


def test_retries_cannot_be_set_per_call(stub):
    server = stub(at_once)
    with pytest.raises(TypeError, match="max_retries"):
        chat(server.url).invoke("Why?", max_retries=0)
    assert server.requests == []


@pytest.mark.wall
def test_the_openai_client_obeys_retry_after_whatever_its_timeout(stub):
    server = stub(failing(429, "retry-after-ms: 400\r\n"))
    with openai_client(server.url, timeout=0.2, max_retries=1) as client:
        begun_at = time.monotonic()
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="m", messages=MESSAGES)
    assert time.monotonic() - begun_at >= 0.4
    assert len(server.requests) == 2


def test_the_openai_client_does_not_try_again_when_the_server_says_so(stub):
    server = stub(failing(503, "x-should-retry: false\r\n"))
    with openai_client(server.url, max_retries=5) as client, pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert len(server.requests) == 1
