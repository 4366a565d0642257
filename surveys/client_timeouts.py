"""How long the clients that people use wait by default: measured, each as its documentation makes it.

    table = probe_clients(["openai", "httpx"])

A server that hangs and one whose answer never ends are simulated, in virtual time, so that half an hour takes a second.
A host that does not answer is a full socket of this machine, in real time: who has no limit of connecting waits until
the system gives up.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import importlib.metadata
import json
import math
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict

import pandas as pd
from langgraph.graph import START, StateGraph

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.fault_effects import under_fault
from docmind_lab.services.faults import LONGEST_S, Fault
from docmind_lab.services.plan import Chunk, Headers, Plan, ServiceRequest, json_steps
from docmind_lab.services.virtual_door import HOST, PORT, VirtualDoor
from docmind_lab.virtual_time import VirtualClock

_MESSAGES: Final[list[Any]] = [{"role": "user", "content": "Why?"}]
_CHAT: Final[dict[str, Any]] = {"model": "m", "messages": _MESSAGES}


def _openai(base: str) -> None:
    import openai  # noqa: PLC0415 - each client is loaded alone

    openai.OpenAI(base_url=f"{base}/v1", api_key="k").chat.completions.create(**_CHAT)


def _anthropic(base: str) -> None:
    import anthropic  # noqa: PLC0415

    anthropic.Anthropic(base_url=base, api_key="k").messages.create(model="m", max_tokens=1024, messages=_MESSAGES)


def _google_genai(base: str) -> None:
    from google import genai  # noqa: PLC0415

    client = genai.Client(api_key="k", http_options={"base_url": base})
    client.models.generate_content(model="m", contents="Why?")


def _ollama(base: str) -> None:
    import ollama  # noqa: PLC0415

    ollama.Client(host=base).chat(model="m", messages=_MESSAGES)


def _langchain_openai(base: str) -> None:
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    ChatOpenAI(model="m", base_url=f"{base}/v1", api_key="k").invoke("Why?")  # type: ignore[arg-type]


def _httpx(base: str) -> None:
    import httpx  # noqa: PLC0415

    httpx.post(f"{base}/v1/chat/completions", json=_CHAT)


def _requests(base: str) -> None:
    import requests  # noqa: PLC0415

    requests.post(f"{base}/v1/chat/completions", json=_CHAT)


async def _aiohttp(base: str) -> None:
    import aiohttp  # noqa: PLC0415

    async with aiohttp.ClientSession() as session, session.post(f"{base}/v1/chat/completions", json=_CHAT) as response:
        await response.read()


def _qdrant(base: str) -> None:
    from qdrant_client import QdrantClient  # noqa: PLC0415

    QdrantClient(url=base, check_compatibility=False).collection_exists("c")


async def _mcp(base: str) -> None:
    from mcp import ClientSession  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    async with streamable_http_client(f"{base}/mcp") as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        await session.call_tool("wait", {})


@dataclass(frozen=True)
class ProbedClient:
    """A client library, and one call of it.

    ask: makes a client with nothing but an address and asks once. host: that the simulated services answer for.
    """

    ask: Callable[[str], Any]
    host: str = "https://models.example.com"


CLIENTS: Final = {
    "openai": ProbedClient(_openai),
    "anthropic": ProbedClient(_anthropic),
    "google-genai": ProbedClient(_google_genai),
    "ollama": ProbedClient(_ollama, "http://ollama.example.com:11434"),
    "langchain-openai": ProbedClient(_langchain_openai),
    "httpx": ProbedClient(_httpx),
    "requests": ProbedClient(_requests),
    "aiohttp": ProbedClient(_aiohttp),
    "qdrant-client": ProbedClient(_qdrant, "http://store.example.com:6333"),
    "mcp": ProbedClient(_mcp),
}
"""Distribution → one call of it."""


def probe_clients(names: Sequence[str], repeats: int = 1, *, connects: bool = True) -> pd.DataFrame:
    """Return a row for each run of a client: what ends its wait for a server that hangs, trickles or is not there.

    Args:
        names: The clients.
        repeats: Runs of each.
        connects: Whether the host that does not answer is tried, which takes minutes of real time.

    Returns: Columns client, version, repeat, hang_ends, hang_s (one try), tries, hang_whole_s, trickle_s, connect_ends,
        connect_s, measured_on. Seconds are infinite for no end within an hour; NaN for what was not tried.

    Raises: ConfigurationError for an unknown name.
    """
    if unknown := set(names) - CLIENTS.keys():
        raise ConfigurationError(f"clients are {', '.join(CLIENTS)}, not {', '.join(sorted(unknown))}")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows: list[dict[str, Any]] = [
        {
            "client": name,
            "version": importlib.metadata.version(name),
            "repeat": repeat,
            **_in_virtual_time(name),
            "measured_on": today,
        }
        for name in names
        for repeat in range(1, repeats + 1)
    ]
    # Afterwards, when every client is imported and the machine is at rest.
    if connects:
        with _full_socket() as address, ThreadPoolExecutor(len(rows)) as threads:
            waits = threads.map(lambda row: _connect(CLIENTS[row["client"]], address), rows)
            for row, (error, seconds) in zip(rows, waits, strict=True):
                row["connect_ends"], row["connect_s"] = error, seconds
    return pd.DataFrame(rows, columns=[*COLUMNS])


COLUMNS: Final = (
    "client",
    "version",
    "repeat",
    "hang_ends",
    "hang_s",
    "tries",
    "hang_whole_s",
    "trickle_s",
    "connect_ends",
    "connect_s",
    "measured_on",
)


# ---- a server that hangs, or trickles: in virtual time


class _State(TypedDict, total=False):
    question: str


def _in_virtual_time(name: str) -> dict[str, Any]:
    return _of_mcp() if name == "mcp" else _of_graph(CLIENTS[name])


def _of_graph(client: ProbedClient) -> dict[str, Any]:
    """Ask in the only node of a graph, and return what `dl.timeouts` measures."""

    def ask(state: _State) -> _State:
        client.ask(client.host)
        return {}

    async def ask_async(state: _State) -> _State:
        await client.ask(client.host)
        return {}

    node: Any = ask_async if asyncio.iscoroutinefunction(client.ask) else ask
    graph = StateGraph(_State).add_node("ask", node).add_edge(START, "ask").compile()
    rows = dl.timeouts(dl.graph(graph, [{"question": "Why?"}])).rows
    whole = next(row for row in rows if row.level == "node")
    tries = {row.level: row for row in rows if row.level in ("try", "read")}
    hang_s, by_limit = tries["read"].hang_s, {"try": "total", "read": "read"}
    ends = [by_limit[level] for level, row in tries.items() if math.isclose(row.seconds, hang_s, rel_tol=0.01)]
    return {
        "hang_ends": "nothing" if math.isinf(hang_s) else ends[0] if ends else "another",
        "hang_s": _within_an_hour(hang_s),
        "tries": whole.hang_requests,
        "hang_whole_s": _within_an_hour(whole.hang_s),
        "trickle_s": whole.trickle_s,
    }


def _within_an_hour(seconds: float) -> float:
    return seconds if seconds <= LONGEST_S else math.inf


class _McpServer:
    """The least of an MCP server: it initializes, and a call of its tool is struck by a fault."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.calls = 0

    def plan(self, request: ServiceRequest) -> Plan:
        message = request.json() if request.method == "POST" else {}
        if message.get("method") == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "probed", "version": "1"},
            }
            return Plan(json_steps(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}), "tool")
        if message.get("method") != "tools/call":
            return Plan(json_steps(202 if "method" in message else 405, None), "tool")
        self.calls += 1
        reply = f"data: {json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': {'content': []}})}\n\n"
        answer = (Headers(200, (("content-type", "text/event-stream"),)), Chunk(reply.encode()))
        return under_fault(Plan(answer, "tool"), self._fault)


def _of_mcp() -> dict[str, Any]:
    hang, calls, ends = _mcp_wait(Fault("hang"))
    # Pings of a server come about so often.
    trickle, _, _ = _mcp_wait(Fault("endless", seconds=15.0))
    each_s = hang / max(1, calls)
    return {"hang_ends": ends, "hang_s": each_s, "tries": calls, "hang_whole_s": hang, "trickle_s": trickle}


def _mcp_wait(fault: Fault) -> tuple[float, int, str]:
    """Return how long a call of a tool lasts, infinite for over an hour, how often it was sent, and what ended it."""
    server = _McpServer(fault)
    door = VirtualDoor(server, server)

    async def ask() -> tuple[float, str]:
        began_at, ended = time.monotonic(), "an answer"
        try:
            async with asyncio.timeout(LONGEST_S):
                await _mcp(f"http://{HOST}:{PORT}")
        except BaseException as error:  # noqa: BLE001 - whatever the client raises
            ended = _innermost(error)
        return time.monotonic() - began_at, ended

    seconds, ended = VirtualClock(on_entry=[door.open], horizon_s=2 * LONGEST_S).run(asyncio.run, ask())
    if seconds >= LONGEST_S:
        return math.inf, server.calls, "nothing"
    return seconds, server.calls, {"ReadTimeout": "read"}.get(ended, ended)


# ---- a host that does not answer: in real time


@contextlib.contextmanager
def _full_socket() -> Iterator[str]:
    """Yield the address of a socket of this machine whose queue is full, so that who connects gets no answer."""
    with contextlib.closing(socket.socket()) as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(8):
            filler = stack.enter_context(contextlib.closing(socket.socket()))
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def _connect(client: ProbedClient, address: str) -> tuple[str, float]:
    """Return the error with which a client gives up a host that does not answer, and after how many seconds."""
    began_at = time.monotonic()
    try:
        if asyncio.iscoroutinefunction(client.ask):
            asyncio.run(client.ask(address))
        else:
            client.ask(address)
    except BaseException as error:  # noqa: BLE001 - whatever a client raises
        return _innermost(error), time.monotonic() - began_at
    return "an answer", time.monotonic() - began_at


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


def write_rows(path: Path, table: pd.DataFrame) -> None:
    """Write rows to a CSV file, in place of those of the same clients that it has."""
    if path.exists():
        kept = pd.read_csv(path)
        table = pd.concat([kept[~kept["client"].isin(table["client"])], table])
    order = {name: place for place, name in enumerate(CLIENTS)}
    table = table.sort_values("client", key=lambda names: names.map(order), kind="stable")
    table.round(1).to_csv(path, index=False)
