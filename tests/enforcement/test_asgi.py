"""The ASGI middleware: what it admits, refuses, cuts and leaves alone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from itertools import product
from typing import Any

import httpx
import pytest
from held_clients import AsyncGet, in_a_thread, with_aiohttp, with_async_httpx, with_httpx, with_requests
from held_graphs import wait_until
from langgraph.graph import END, START, StateGraph
from often import often
from served_in_loop import asked, called, caller_of, served
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

from docmind_lab.alternatives.enforcement import enforce
from docmind_lab.alternatives.enforcement.scope import deadline, remaining_s
from docmind_lab.alternatives.enforcement.wire.asgi import DeadlineMiddleware
from docmind_lab.core.duration_headers import DEADLINE_HEADER, GRPC_TIMEOUT
from docmind_lab.core.errors import ConfigurationError, DeadlineExceeded
from docmind_lab.core.holds import current_hold

# From the deadline until the caller of a cut handler is back, on two shared cores; one that is not cut takes 30 s.
CUT_WITHIN_S = 2.0


async def left(_: Request) -> Response:
    return JSONResponse({"remaining_s": remaining_s()})


def left_in_a_thread(_: Request) -> Response:
    return JSONResponse({"remaining_s": remaining_s()})


class Hung:
    """An endpoint that never answers, and what became of it."""

    def __init__(self) -> None:
        self.begun, self.cancelled = 0, 0

    async def __call__(self, _: Request) -> Response:
        self.begun += 1
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Response("late")


async def stream(_: Request) -> Response:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.sleep(30)
        yield b"late"

    return StreamingResponse(chunks())


async def under_a_nearer_deadline(_: Request) -> Response:
    async with deadline(0.02):
        await asyncio.sleep(30)
    return Response("late")


async def times_out_of_its_own(_: Request) -> Response:
    raise TimeoutError("a database, say")


class Passes(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        return response


def held(routes: list[Any], *, passes: bool = True, **options: Any) -> Starlette:
    """An application with the middleware, and perhaps with one of Starlette's below it."""
    below = [Middleware(Passes)] if passes else []
    return Starlette(routes=routes, middleware=[Middleware(DeadlineMiddleware, **options), *below])


def upstream(endpoint: Any) -> contextlib.AbstractAsyncContextManager[str]:
    """A service with this one endpoint, behind a socket."""
    return served(Starlette(routes=[Route("/", endpoint)]))


def application(*, hung: Hung | None = None, above: bool = True, **options: Any) -> Any:
    """A Starlette application with the middleware added to it, or, unless `above`, around it."""

    async def hang(request: Request) -> Response:
        return await (hung or Hung())(request)

    routes = [
        Route("/left", left),
        Route("/thread", left_in_a_thread),
        Route("/hang", hang, methods=["GET", "POST"]),
        Route("/stream", stream),
        Route("/nearer", under_a_nearer_deadline),
        Route("/own", times_out_of_its_own),
    ]
    if above:
        return held(routes, **options)
    return DeadlineMiddleware(Starlette(routes=routes), **options)


def ask(app: Any, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return asyncio.run(asked(app, path, headers))


ALLOWED = {"at_most_s": 20, "transit_s": 0.5}


@pytest.mark.parametrize(
    ("options", "headers", "limit_s"),
    [
        (ALLOWED, {}, 20),
        (ALLOWED, {DEADLINE_HEADER: "9000"}, 8.5),
        (ALLOWED, {DEADLINE_HEADER: "90000"}, 20),
        (ALLOWED, {DEADLINE_HEADER: "soon"}, 20),
        (ALLOWED, {GRPC_TIMEOUT: "9S"}, 20),
        ({}, {}, None),
        ({}, {DEADLINE_HEADER: "9000"}, 9),
        ({"header": "Grpc-Timeout"}, {GRPC_TIMEOUT: "9S", DEADLINE_HEADER: "1"}, 9),
    ],
)
def test_the_smaller_of_what_came_and_what_is_allowed_is_in_force(
    options: dict[str, Any], headers: dict[str, str], limit_s: float | None
) -> None:
    for path in ("/left", "/thread"):
        seconds = ask(application(**options), path, headers).json()["remaining_s"]
        # 5 s: a busy machine between the start of the request and the handler.
        assert seconds is None if limit_s is None else limit_s - 5 < seconds <= limit_s


@pytest.mark.parametrize(
    ("value", "options"),
    [("0", {}), ("4", {}), ("900", {"transit_s": 1.0}), ("900", {"least_s": 1.0}), ("1", {"least_s": 0.01})],
)
def test_what_cannot_be_met_is_refused_at_once_and_the_application_never_sees_it(
    value: str, options: dict[str, float]
) -> None:
    hung = Hung()
    response = ask(application(hung=hung, at_most_s=20, **options), "/hang", {DEADLINE_HEADER: value})
    assert response.status_code == 504
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert error["type"] == "deadline_refused"
    assert "GET /hang: refused, because its caller waits for" in error["message"]
    assert hung.begun == 0


@pytest.mark.wall
@pytest.mark.parametrize("above", [True, False])
def test_a_handler_that_the_deadline_cuts_is_cancelled_and_answered_with_504(above: bool) -> None:
    hung = Hung()
    begun_s = time.monotonic()
    response = ask(application(hung=hung, above=above, at_most_s=20), "/hang", {DEADLINE_HEADER: "50"})
    assert time.monotonic() - begun_s < 0.05 + CUT_WITHIN_S
    assert response.status_code == 504
    error = response.json()["error"]
    assert error["type"] == "deadline_exceeded"
    assert "GET /hang" in error["message"]
    assert (hung.begun, hung.cancelled) == (1, 1)


@pytest.mark.wall
def test_a_nearer_deadline_that_the_handler_did_not_catch_is_answered_with_504() -> None:
    assert ask(application(at_most_s=20), "/nearer").status_code == 504


def test_a_timeout_of_the_handlers_own_is_no_deadline() -> None:
    assert ask(application(at_most_s=20), "/own").status_code == 500


@pytest.mark.wall
@pytest.mark.parametrize("above", [True, False])
def test_a_stream_that_has_begun_ends_incomplete(above: bool) -> None:
    app = application(above=above, at_most_s=0.05)
    sent = asyncio.run(messages_of(app, "/stream"))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 200
    assert sent[1]["body"] == b"first"
    # A client must not take what it got for the whole.
    assert sent[1]["more_body"] is True


async def messages_of(app: Any, path: str) -> list[MutableMapping[str, Any]]:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        if not received:
            received.append(True)
            return {"type": "http.request", "body": b"", "more_body": False}
        await asyncio.sleep(30)
        raise AssertionError("nobody waits as long")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    received: list[bool] = []
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": []}
    await app({**scope, "query_string": b"", "root_path": "", "http_version": "1.1"}, receive, send)
    return sent


def calling(url: str) -> list[Route]:
    """Endpoints that call a service that never answers, each in another way."""

    def in_a_thread(_: Request) -> Response:
        with httpx.Client(trust_env=False) as client:
            return Response(client.get(url).text)

    async def in_a_task_group(_: Request) -> Response:
        async with httpx.AsyncClient(trust_env=False) as client, asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(client.get(url))
        return Response("late")

    async def in_a_stream(_: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            async with httpx.AsyncClient(trust_env=False) as client:
                yield (await client.get(url)).content

        return StreamingResponse(chunks())

    endpoints = (in_a_thread, in_a_task_group, in_a_stream)
    return [Route(f"/{endpoint.__name__}", endpoint) for endpoint in endpoints]


async def hang_forever(_: Request) -> Response:
    await asyncio.sleep(30)
    return Response("late")


@pytest.mark.wall
@pytest.mark.parametrize("above", often([True, False], True))
def test_calls_of_a_handler_are_cut_however_it_makes_them_and_no_client_takes_a_part_for_the_whole(
    above: bool,
) -> None:
    async def main() -> list[httpx.Response | BaseException]:
        async with upstream(hang_forever) as url:
            routes = calling(url)
            around = DeadlineMiddleware(Starlette(routes=routes), at_most_s=1.0)
            async with called(held(routes, at_most_s=1.0) if above else around) as client:
                return await asyncio.gather(*(client.get(route.path) for route in routes), return_exceptions=True)

    begun_s = time.monotonic()
    *whole, cut = asyncio.run(main())
    assert time.monotonic() - begun_s < 1.0 + 2 * CUT_WITHIN_S
    for response in whole:
        assert isinstance(response, httpx.Response)
        assert response.status_code == 504
        assert response.json()["error"]["type"] == "deadline_exceeded"
    assert isinstance(cut, httpx.RemoteProtocolError)


@pytest.mark.wall
def test_a_stream_that_ends_by_itself_at_the_deadline_is_whole() -> None:
    async def app(_: object, __: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        # Nothing is awaited until the end, so nothing is cancelled.
        while (left := remaining_s()) is not None and left > 0:
            time.sleep(0.001)
        await send({"type": "http.response.body", "body": b", and no more", "more_body": False})

    sent = asyncio.run(messages_of(DeadlineMiddleware(app, at_most_s=0.05), "/"))
    assert b"".join(message.get("body", b"") for message in sent) == b"first, and no more"
    assert sent[-1]["more_body"] is False


BEGIN = {"type": "http.response.start", "status": 200, "headers": []}
BODY, MORE = {"type": "http.response.body"}, {"type": "http.response.body", "more_body": True}
TRAILERS = {"type": "http.response.trailers"}


@pytest.mark.parametrize(
    ("messages", "ends_with"),
    [
        ([BEGIN, BODY], 2),
        ([BEGIN, MORE, BODY], 3),
        ([BEGIN, {"type": "http.response.pathsend", "path": "/a"}], 2),
        ([BEGIN | {"trailers": True}, BODY, TRAILERS | {"more_trailers": True}, TRAILERS], 4),
    ],
    ids=["whole", "stream", "file", "trailers"],
)
def test_the_deadline_is_in_force_until_the_last_message_of_the_response(
    messages: list[dict[str, Any]], ends_with: int
) -> None:
    held_after: list[bool] = []

    async def app(_: object, __: object, send: Any) -> None:
        for message in messages:
            await send(message)
            held_after.append(remaining_s() is not None)

    asyncio.run(messages_of(DeadlineMiddleware(app, at_most_s=20), "/"))
    assert held_after == [number + 1 < ends_with for number in range(len(messages))]


# ---- after the response

CALLER_WAITS_MS = 300
# Longer than the caller waits: a request that is under way at the deadline, and one that begins after it.
AUDIT_S = 0.5
Ends = dict[str, str]


async def twice(get: AsyncGet, url: str, ends: Ends, name: str) -> None:
    """Ask twice, and note what was said at last, or the error."""
    try:
        ends[name] = [await get(url) for _ in range(2)][-1]
    except BaseException as error:
        ends[name] = type(error).__name__
        raise


def auditing(url: str, ends: Ends) -> list[Route]:
    """Endpoints that answer at once, and leave an audit at `url` behind, each in another way."""
    left: set[asyncio.Task[None]] = set()

    def leave(get: AsyncGet, name: str) -> None:
        task = asyncio.get_running_loop().create_task(twice(get, url, ends, name))
        left.add(task)
        # Looked at, so that asyncio does not print the error of one that was cut.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    async def background(_: Request) -> Response:
        return Response("charged", background=BackgroundTask(twice, with_async_httpx, url, ends, "/background"))

    async def blocking(_: Request) -> Response:
        def blocks() -> None:
            ends["/blocking"] = [with_httpx(url) for _ in range(2)][-1]

        return Response("charged", background=BackgroundTask(blocks))

    async def task(_: Request) -> Response:
        leave(with_async_httpx, "/task")
        return Response("charged")

    async def thread(_: Request) -> Response:
        leave(in_a_thread(with_httpx), "/thread")
        return Response("charged")

    async def streamed(_: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"char"
            yield b"ged"

        audit = BackgroundTask(twice, with_async_httpx, url, ends, "/streamed")
        return StreamingResponse(chunks(), background=audit)

    return [Route(f"/{each.__name__}", each) for each in (background, blocking, task, thread, streamed)]


async def slow_audit(_: Request) -> Response:
    await asyncio.sleep(AUDIT_S)
    return Response("noted")


async def audits_after(ends: Ends, above: bool) -> list[str]:
    """Return the answers of each endpoint of `auditing`, once their audits are over, whose ends go into `ends`."""
    async with upstream(slow_audit) as url:
        routes = auditing(url, ends)
        async with called(held(routes, passes=above)) as client:
            headers = {DEADLINE_HEADER: str(CALLER_WAITS_MS)}
            answers = await asyncio.gather(*(client.get(route.path, headers=headers) for route in routes))
            await asyncio.to_thread(wait_until, lambda: len(ends) == len(routes), 10)
    return [answer.text for answer in answers]


@pytest.mark.wall
@pytest.mark.parametrize("above", often([True, False], True))
def test_what_follows_a_whole_response_is_under_no_deadline_of_its_request(above: bool) -> None:
    ends: Ends = {}
    assert asyncio.run(audits_after(ends, above)) == ["charged"] * 5
    assert ends == dict.fromkeys(["/background", "/blocking", "/task", "/thread", "/streamed"], "noted")


@pytest.mark.wall
@pytest.mark.parametrize("above", [True, False])
def test_a_cut_after_the_response_began_is_logged_once_with_its_route(
    above: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = held([Route("/stream/{customer}", stream)], passes=above, at_most_s=0.05)
    asyncio.run(messages_of(app, "/stream/jane"))
    (message,) = [record.getMessage() for record in caplog.records if record.name == "docmind_lab.wire"]
    assert message.startswith("GET /stream/{customer}: the deadline of 0.050 s cut its response, which had begun")
    assert "jane" not in message


@pytest.mark.wall
def test_a_deadline_of_the_work_after_a_response_is_the_servers_to_hear_of() -> None:
    async def audit() -> None:
        async with deadline(0.02):
            await asyncio.sleep(30)

    async def answer(_: Request) -> Response:
        return Response("charged", background=BackgroundTask(audit))

    app = held([Route("/", answer)], passes=False, at_most_s=20)
    with pytest.raises(DeadlineExceeded):
        asyncio.run(messages_of(app, "/"))


Charge = Callable[[str], Any]
charge_in_a_thread, charge_by_requests = in_a_thread(with_httpx), in_a_thread(with_requests)


async def charge_under_a_deadline_of_its_own(url: str) -> str:
    async with deadline(20):
        return await with_async_httpx(url)


async def charge_in_a_task_of_its_own(url: str) -> str:
    return await asyncio.create_task(with_async_httpx(url))


async def charge_by_an_enforced_graph(url: str) -> str:
    async def work(state: dict[str, str]) -> dict[str, str]:
        return {"said": await with_async_httpx(url)}

    graph = StateGraph(dict).add_node("work", work).add_edge(START, "work").add_edge("work", END).compile()
    return str((await enforce(graph, 20).ainvoke({"said": ""})).state)


CHARGES: list[Charge] = [
    with_async_httpx,
    with_aiohttp,
    charge_in_a_thread,
    charge_by_requests,
    charge_under_a_deadline_of_its_own,
    charge_in_a_task_of_its_own,
    charge_by_an_enforced_graph,
]


async def end_of_charge(charge: Charge, request: Callable[[asyncio.Task[str]], Any], above: bool) -> tuple[int, str]:
    """Return the status of a request that makes a task, and how that task, or the thread that it waits for, ended."""
    ends: Ends = {}
    tasks: list[asyncio.Task[None]] = []
    async with upstream(slow_audit) as url:

        async def endpoint(_: Request) -> Response:
            tasks.append(asyncio.create_task(twice(charge, url, ends, "charge")))
            await request(tasks[0])
            return Response("late")

        async with called(held([Route("/", endpoint)], passes=above, at_most_s=0.2)) as client:
            status = (await client.get("/")).status_code
            await asyncio.wait(tasks, timeout=10)
    return status, ends["charge"]


async def leaves(_: asyncio.Task[str]) -> None:
    await asyncio.sleep(30)


async def shields(task: asyncio.Task[str]) -> None:
    await asyncio.shield(task)


async def awaits(task: asyncio.Task[str]) -> None:
    await task


async def gathers(task: asyncio.Task[str]) -> None:
    await asyncio.gather(task, asyncio.sleep(30))


async def waits_for(task: asyncio.Task[str]) -> None:
    await asyncio.wait_for(task, 30)


@pytest.mark.wall
@pytest.mark.parametrize("above", often([True, False], True))
@pytest.mark.parametrize(
    ("charge", "request_"),
    often(
        [
            *product(CHARGES, (leaves, awaits)),
            *((with_async_httpx, request) for request in (shields, gathers, waits_for)),
        ],
        *((charge, leaves) for charge in (with_async_httpx, charge_in_a_thread, charge_by_an_enforced_graph)),
        (with_aiohttp, awaits),
        (charge_by_requests, awaits),
        *((with_async_httpx, request) for request in (shields, gathers)),
    ),
)
def test_a_task_is_cut_with_its_request_exactly_if_the_request_awaits_it_unshielded(
    charge: Charge, request_: Any, above: bool
) -> None:
    status, end = asyncio.run(end_of_charge(charge, request_, above))
    assert (status, "noted" in end) == (504, request_ in (leaves, shields)), end


def test_a_task_of_a_request_is_told_the_time_that_is_left() -> None:
    async def endpoint(_: Request) -> Response:
        async def tell() -> list[float | None]:
            async with deadline(50):
                return [remaining_s(), await asyncio.to_thread(remaining_s)]

        return JSONResponse(await asyncio.create_task(tell()))

    seconds = ask(held([Route("/", endpoint)], passes=False, at_most_s=20), "/").json()
    assert all(0 < each <= 20 for each in seconds)


def test_an_event_loop_with_a_task_factory_of_its_own_keeps_it() -> None:
    async def main() -> None:
        def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
            return asyncio.Task(coroutine, loop=loop, **options)

        asyncio.get_running_loop().set_task_factory(factory)
        await messages_of(application(at_most_s=20), "/left")
        assert asyncio.get_running_loop().get_task_factory() is factory

    asyncio.run(main())


def test_web_sockets_and_the_lifespan_pass_through() -> None:
    noted: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        noted.append(f"up, held: {current_hold()}")
        yield
        noted.append("down")

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_json({"held": current_hold() is not None})
        await socket.close()

    routes = [WebSocketRoute("/echo", echo)]
    app = DeadlineMiddleware(Starlette(routes=routes, lifespan=lifespan), at_most_s=20)
    with (
        TestClient(app) as client,
        client.websocket_connect("/echo", headers={DEADLINE_HEADER: "1"}) as socket,
    ):
        assert socket.receive_json() == {"held": False}
    assert noted == ["up, held: None", "down"]


def test_requests_at_the_same_time_have_deadlines_of_their_own() -> None:
    app = application(at_most_s=20)

    async def main() -> list[float]:
        async with caller_of(app) as client:
            values = [str(1000 * (6 + number)) for number in range(10)]
            waiting = [client.get("/left", headers={DEADLINE_HEADER: value}) for value in values]
            return [response.json()["remaining_s"] for response in await asyncio.gather(*waiting)]

    seconds = asyncio.run(main())
    assert seconds == sorted(seconds)
    # 1 s: pauses of a busy machine between requests that are one second apart.
    assert seconds[-1] - seconds[0] == pytest.approx(9, abs=1)


def test_nothing_is_in_force_after_a_request() -> None:
    async def main() -> None:
        app = application(at_most_s=0.03)
        for path in ("/left", "/hang", "/stream"):
            with contextlib.suppress(httpx.HTTPError):
                await messages_of(app, path)
            assert current_hold() is None

    asyncio.run(main())


def test_a_header_that_cannot_be_used_is_refused_by_its_field() -> None:
    with pytest.raises(ConfigurationError, match="header"):
        DeadlineMiddleware(Starlette(), header="a b")
