"""A client that sends or reads nothing is waited for no longer than the services say."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from held_graphs import wait_until
from served_here import Here

from docmind_lab.services.asgi_messages import BoundedConnection
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Plan, ServiceRequest, json_steps
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile

pytestmark = pytest.mark.wall

PATIENCE_S = 0.2
# A busy machine pauses for tenths of a second; a connection that is not closed at all would need for ever.
CLOSED_WITHIN_S = 10.0
# More than the buffers of a loopback connection hold.
LARGE = {"text": "x" * 30_000_000}


class Impatient(BoundedConnection):
    patience_s = PATIENCE_S


class LargeAnswers:
    def plan(self, request: ServiceRequest) -> Plan:
        return Plan(json_steps(200, LARGE), "retrieval")


@pytest.fixture(scope="module")
def here() -> Iterator[Here]:
    model = OpenAIService(LatencyProfile.named("typical/1000"))
    served = Here(WallDoor(model, LargeAnswers(), client_patience_s=PATIENCE_S), Impatient)
    yield served
    served.close()


def closed(here: Here, sent: bytes) -> bytes:
    """What a client reads until its connection is closed, that sends this and nothing more."""
    with socket.create_connection(("127.0.0.1", here.port), timeout=CLOSED_WITHIN_S) as connection:
        connection.sendall(sent)
        read = b""
        try:
            while part := connection.recv(65536):
                read += part
        except ConnectionResetError:
            pass
        return read


@pytest.mark.parametrize(
    "sent", [b"", b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n", b"POST /v1/chat"], ids=["none", "some", "line"]
)
def test_a_connection_on_which_no_request_begins_is_closed(here: Here, sent: bytes) -> None:
    assert closed(here, sent) == b""


def test_a_body_that_was_declared_and_never_comes_is_answered_by_408_and_closed(here: Here) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
    assert closed(here, head + b"{").startswith(b"HTTP/1.1 408 ")


def test_a_client_that_reads_nothing_of_its_reply_is_closed(here: Here) -> None:
    with socket.create_connection(("127.0.0.1", here.port), timeout=CLOSED_WITHIN_S) as connection:
        connection.sendall(b"GET /collections HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_until(lambda: any(row.outcome == "error" for row in here.log.rows("")), CLOSED_WITHIN_S)
        time.sleep(PATIENCE_S)  # until the next look at the connection
        read = 0
        with pytest.raises(ConnectionResetError):  # noqa: PT012 - the end may come at any read
            while part := connection.recv(1 << 20):
                read += len(part)
            raise ConnectionResetError("closed in order")
        assert read < len(json.dumps(LARGE))


def test_a_client_that_asks_in_time_is_served_on_one_connection(here: Here) -> None:
    with httpx.Client(base_url=here.addresses.openai_base_url, trust_env=False) as client:
        assert [client.get("/models").status_code for _ in range(3)] == [200, 200, 200]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/collections/c/points/query", "/a2a/reader_1"])
@pytest.mark.parametrize("query", ["", "?\xff"])
def test_deep_json_is_refused_by_400_and_not_by_500(path: str, query: str, serve_here: Callable[..., Here]) -> None:
    request = f"POST {path}{query} HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\nconnection: close\r\n\r\n"
    answer = closed(serve_here(), request.encode("latin-1") + b"[" * 200_000)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 "))
