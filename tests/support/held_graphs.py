"""Graphs of two nodes for tests of enforcement, and a server for the second: it hangs, trickles or is quick."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import httpx
from chains import chain
from stub_server import StubConnection, StubRequest, StubServer

QUICK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Notes(TypedDict, total=False):
    path: str
    log: Annotated[list[str], operator.add]


@dataclass
class Upstream:
    """Answers `/ok` at once, `/hang` never and `/trickle` in small pieces; notes when clients leave."""

    left_at: list[float] = field(default_factory=list)
    open: int = 0

    def __call__(self, request: StubRequest, connection: StubConnection) -> None:
        if request.path == "/ok":
            connection.send(QUICK)
            return
        self.open += 1
        try:
            if request.path == "/trickle":
                connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
                while True:
                    connection.send(b"x")
                    connection.pause(0.02)
            # Until the client leaves.
            connection.socket.settimeout(30)
            assert connection.socket.recv(1) == b""
        except (OSError, AssertionError):
            pass
        finally:
            self.open -= 1
            self.left_at.append(time.monotonic())
        raise OSError("the client has left")


def async_graph(url: str, client: Any = None, **compiled: Any) -> Any:
    """A graph of async nodes; its second node asks the server at `url`."""

    async def plan(state: Notes) -> Notes:
        return {"log": ["plan"]}

    async def ask(state: Notes) -> Notes:
        if client is not None:
            return {"log": [(await client.get(url + state["path"])).text]}
        async with httpx.AsyncClient(timeout=None) as own:
            return {"log": [(await own.get(url + state["path"])).text]}

    return two_nodes(plan, ask, **compiled)


def sync_graph(url: str, get: Callable[[str], Any] | None = None, **compiled: Any) -> Any:
    """A graph of blocking nodes; its second node asks the server at `url` by `get`."""

    def plan(state: Notes) -> Notes:
        return {"log": ["plan"]}

    def ask(state: Notes) -> Notes:
        if get is not None:
            return {"log": [get(url + state["path"])]}
        with httpx.Client(timeout=None) as own:
            return {"log": [own.get(url + state["path"]).text]}

    return two_nodes(plan, ask, **compiled)


def two_nodes(plan: Any, ask: Any, **compiled: Any) -> Any:
    return in_a_row(Notes, {"plan": plan, "ask": ask}, **compiled)


def in_a_row(state: Any, nodes: Mapping[str, Any], **compiled: Any) -> Any:
    """A graph of these nodes, one after the other."""
    return chain(state, **nodes).compile(**compiled)


def upstream_of(stub: Callable[..., StubServer]) -> tuple[Upstream, str]:
    """Start the server, and return what it notes and its address."""
    upstream = Upstream()
    return upstream, stub(upstream).url


def wait_until(holds: Callable[[], bool], within_s: float = 5.0) -> None:
    """Wait for what another thread does. Raises: AssertionError after `within_s`."""
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)
