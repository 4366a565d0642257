"""Which requests of which clients carry the time left, over sockets: those to named hosts, under a deadline."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
import requests
from held_clients import ASYNC, AsyncGet, in_a_thread, with_httpx, with_requests
from often import often
from served_in_loop import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

import docmind_lab as dl
from docmind_lab.core.duration_headers import DEADLINE_HEADER
from docmind_lab.network.deadline_headers import wire_in_force

# Requests on a busy machine, from the start of the deadline.
BUSY_S = 5.0


@pytest.fixture(autouse=True)
def no_hooks_afterwards() -> Iterator[None]:
    yield
    dl.uninstall()
    assert wire_in_force() is None


async def say(request: Request) -> Response:
    return JSONResponse({"came": request.headers.getlist(DEADLINE_HEADER), "mine": request.headers.getlist("x-mine")})


async def redirect(request: Request) -> Response:
    return RedirectResponse(request.query_params["to"])


async def say_as_a_proxy(request: Request, _: Exception) -> Response:
    # What is asked of a proxy is a whole address, which is no route.
    return await say(request)


APP = Starlette(
    routes=[Route("/", say, methods=["GET", "POST"]), Route("/redirect", redirect)],
    exception_handlers={404: say_as_a_proxy},
)


Send = Callable[[str, dict[str, str]], Awaitable[Any]]


def said_by(get: AsyncGet) -> Send:
    """What the service says of a request with these headers."""

    async def send(url: str, headers: dict[str, str]) -> Any:
        return json.loads(await get(url, headers))

    send.__name__ = get.__name__
    return send


CLIENTS = [said_by(get) for get in (*ASYNC, in_a_thread(with_httpx), in_a_thread(with_requests))]


def run(main: Callable[[str, str], Awaitable[Any]]) -> Any:
    """Run with the addresses of a service of one's own and of a third party."""

    async def serve() -> Any:
        async with served(APP) as own, served(APP) as third_party:
            dl.install(wire=dl.DeadlineOnWire(hosts=(own.removeprefix("http://"),)))
            return await main(own, third_party)

    return asyncio.run(asyncio.wait_for(serve(), 30))


@pytest.mark.parametrize("send", CLIENTS, ids=lambda send: send.__name__)
def test_a_named_host_gets_the_time_left_and_a_third_party_nothing(send: Send) -> None:
    async def main(own: str, third_party: str) -> list[Any]:
        copied = {"X-Envoy-Expected-Rq-Timeout-Ms": "700", "x-mine": "kept"}
        async with dl.deadline(20):
            to_own, to_third_party = await send(f"{own}/", {}), await send(f"{third_party}/", {})
            copied_to_own, copied_to_third_party = await send(f"{own}/", copied), await send(f"{third_party}/", copied)
            # A redirect is a request of its own, to a host of its own.
            away = await send(f"{own}/redirect?to={third_party}/", {})
            back = await send(f"{third_party}/redirect?to={own}/", {})
        assert copied == {"X-Envoy-Expected-Rq-Timeout-Ms": "700", "x-mine": "kept"}
        return [to_own, to_third_party, copied_to_own, copied_to_third_party, away, back]

    to_own, to_third_party, copied_to_own, copied_to_third_party, away, back = run(main)
    for answer in (to_own, back):
        (milliseconds,) = answer["came"]
        assert 20_000 - 1000 * BUSY_S < int(milliseconds) <= 20_000
    assert to_third_party["came"] == away["came"] == []
    assert copied_to_own == {"came": ["700"], "mine": ["kept"]}
    assert copied_to_third_party == {"came": [], "mine": ["kept"]}


@pytest.mark.parametrize("send", often(CLIENTS, CLIENTS[0]), ids=lambda send: send.__name__)
def test_outside_a_deadline_nothing_is_added(send: Send) -> None:
    async def main(own: str, _: str) -> Any:
        return await send(f"{own}/", {})

    assert run(main)["came"] == []


@pytest.mark.parametrize("web", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_request_that_is_sent_again_has_the_time_that_is_left_then_and_its_body(web: Any) -> None:
    async def main(own: str, _: str) -> list[int]:
        request = web.Request("POST", f"{own}/", json={"a": 1})
        came = []
        async with web.AsyncClient(trust_env=False) as client:
            for limit_s in (10, 20):
                async with dl.deadline(limit_s):
                    came.append(int((await client.send(request)).json()["came"][0]))
        assert DEADLINE_HEADER not in request.headers
        return came

    first, second = run(main)
    assert first <= 10_000
    assert 20_000 - 1000 * BUSY_S < second <= 20_000


def test_a_request_of_requests_keeps_its_headers() -> None:
    async def main(own: str, _: str) -> Any:
        prepared = requests.Request("POST", f"{own}/", headers={"x-mine": "kept"}, data=b"x").prepare()
        with requests.Session() as session:
            session.trust_env = False
            with dl.deadline(20):
                answer = await asyncio.to_thread(functools.partial(session.send, prepared, timeout=20))
        assert DEADLINE_HEADER not in prepared.headers
        return answer.json()

    answer = run(main)
    assert answer["mine"] == ["kept"]
    assert len(answer["came"]) == 1


def test_without_a_wire_nothing_is_sent_and_uninstall_takes_it_away() -> None:
    async def main(own: str, _: str) -> list[Any]:
        dl.install()
        assert wire_in_force() is not None  # installed again without one, it stays
        dl.uninstall()
        dl.install()
        async with dl.deadline(20):
            return [(await send(f"{own}/", {}))["came"] for send in CLIENTS]

    assert run(main) == [[]] * len(CLIENTS)


def test_through_a_proxy_urllib3_sends_no_time_since_the_host_behind_it_is_not_known() -> None:
    async def main(own: str, _: str) -> Any:
        def send() -> Any:
            # The proxy is a host that is named; what is asked of it is not.
            return requests.get("http://api.openai.test/", proxies={"http": own}, timeout=20).json()

        async with dl.deadline(20):
            return await asyncio.to_thread(send)

    assert run(main)["came"] == []
