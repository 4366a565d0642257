"""Durations that come from outside, of any length and form: no header makes a request fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from held_clients import ASYNC, BLOCKING
from held_graphs import QUICK, async_graph, sync_graph
from often import often
from served_in_loop import asked
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from stub_server import StubConnection, StubRequest, StubServer

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.wire.a2a import DeadlineExecutor
from docmind_lab.alternatives.enforcement.wire.asgi import DeadlineMiddleware
from docmind_lab.alternatives.enforcement.wire.mcp import ToolDeadline
from docmind_lab.alternatives.enforcement.wire.server_limits import METADATA_KEY, ServerLimits, read_metadata_s
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.duration_headers import DEADLINE_HEADER, GRPC_TIMEOUT, smallest_s
from docmind_lab.core.errors import BudgetRefused, ConfigurationError

Stub = Callable[..., StubServer]
HEADERS = (DEADLINE_HEADER, GRPC_TIMEOUT, "x-mine")
# The longest of each unit of gRPC, the longest in milliseconds, one digit more, and the sizes at which a clock, a
# socket (2**31 ms) and a float run out.
LONG = [
    *(f"99999999{unit}" for unit in "HMSmun"),
    *("9" * digits for digits in (8, 9, 10, 12, 13, 14, 15, 16, 20, 400)),
    *(f"{2**power}{unit}" for power in (26, 31, 32, 53, 63) for unit in ("", "H", "S")),
    "10000000000000",
]


def quick(request: StubRequest, connection: StubConnection) -> None:
    connection.send(QUICK)


def application(url: str, client: Callable[[str], Any], **options: Any) -> Starlette:
    async def awaited(_: Request) -> Response:
        await client(url)
        return Response("ok")

    def in_a_thread(_: Request) -> Response:
        client(url)
        return Response("ok")

    endpoint = in_a_thread if client in BLOCKING else awaited
    return Starlette(routes=[Route("/", endpoint)], middleware=[Middleware(DeadlineMiddleware, **options)])


def too_short(value: str, name: str) -> bool:
    """Whether a value says that its sender waits for less than a request takes on a busy machine."""
    came_s = smallest_s([value], name)
    return came_s is not None and came_s < 10


CASES = [*((client, 1e12) for client in (*ASYNC, *BLOCKING)), (ASYNC[0], None), (BLOCKING[0], 20.0)]


@pytest.mark.parametrize(("client", "at_most_s"), often(CASES, (ASYNC[0], 1e12), (BLOCKING[0], 1e12)))
def test_no_header_makes_a_request_fail(stub: Stub, client: Callable[[str], Any], at_most_s: float | None) -> None:
    url = stub(quick).url

    async def ask(name: str, value: str) -> httpx.Response:
        app = application(url, client, header=name, at_most_s=at_most_s)
        return await asked(app, "/", [(name.encode(), value.encode("latin-1"))])

    async def main() -> list[tuple[str, str, int]]:
        sent = [(name, value) for name in HEADERS for value in LONG if not too_short(value, name)]
        return [(name, value, (await ask(name, value)).status_code) for name, value in sent]

    answered = asyncio.run(main())
    assert len(answered) > 50
    assert [each for each in answered if each[2] != 200] == []


@pytest.mark.parametrize("letter", list("ABCDEF"))
@pytest.mark.parametrize("limit_s", often([3e6, 1e10, 1e13, 3.6e11, 1e300], 3e6, 1e300))
def test_a_call_may_have_a_deadline_of_any_length(stub: Stub, letter: str, limit_s: float) -> None:
    make = sync_graph if letter in "ABD" else async_graph
    agent = dl.enforce(make(stub(quick).url), 20, letter)
    assert agent.invoke({"path": "/ok"}, deadline=limit_s).state["log"] == ["plan", "ok"]
    came = Deadline.from_headers({GRPC_TIMEOUT: "99999999H"}, at_most_s=limit_s)
    assert agent.invoke({"path": "/ok"}, deadline=came).state["log"] == ["plan", "ok"]


# ---- what a service allows, and what it cannot, for requests, tools and tasks alike


@pytest.mark.parametrize(
    ("came", "limit_s"),
    [(9000, 8.5), ("9000", 8.5), (90_000, 20), ("soon", 20), (True, 20), (10**400, 20), (None, 20), ([1], 20)],
)
def test_the_smaller_of_what_came_and_what_is_allowed_counts(came: object, limit_s: float) -> None:
    came_s = read_metadata_s({METADATA_KEY: came})
    assert ServerLimits(at_most_s=20, transit_s=0.5).admitted_s(came_s, "task") == limit_s


@pytest.mark.parametrize(
    "make",
    [partial(DeadlineMiddleware, Starlette()), ToolDeadline, partial(DeadlineExecutor, object())],
    ids=["ASGI", "MCP", "A2A"],
)
def test_options_that_cannot_be_used_name_the_field(make: Callable[..., Any]) -> None:
    for options, field in (
        ({"at_most_s": 0}, "at_most_s"),
        ({"at_most_s": 1.0, "least_s": 1.0}, "at_most_s must be more than least_s"),
        ({"transit_s": -1}, "transit_s"),
        ({"least_s": float("nan")}, "least_s"),
        ({"least_s": float("inf")}, "least_s"),
    ):
        with pytest.raises(ConfigurationError, match=field):
            make(**options)


@pytest.mark.parametrize(("came_s", "transit_s", "least_s"), [(0.0, 0.0, 0.0), (0.5, 0.5, 0.0), (0.4, 0.0, 0.5)])
def test_work_whose_caller_has_nothing_left_or_too_little_must_not_begin(
    came_s: float, transit_s: float, least_s: float
) -> None:
    limits = ServerLimits(transit_s=transit_s, least_s=least_s)
    with pytest.raises(BudgetRefused, match="nothing was begun"):
        limits.admitted_s(came_s, "report")
    assert limits.admitted_s(came_s + 0.25, "report") == pytest.approx(came_s + 0.25 - transit_s)
