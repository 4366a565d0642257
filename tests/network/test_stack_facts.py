"""Facts about the clients that this package leans on: a failure here means that a release has changed one.

They are used as a user's program would, without the seam.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import openai
import pytest
from chat_replies import at_once, reply, silent
from langchain_openai import ChatOpenAI
from qdrant_client import QdrantClient
from qdrant_client.http.exceptions import ResponseHandlingException


def failing(request, connection) -> None:
    connection.send(reply(b"{}", 500, "retry-after-ms: 1\r\n"))


def chat(url: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=f"{url}/v1", api_key="unused", **options)


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
    server = stub(failing)
    with pytest.raises(openai.InternalServerError):
        chat(server.url).invoke("Why?")
    assert len(server.requests) == 3
