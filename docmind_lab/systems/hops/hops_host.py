"""The server of all hops behind a door: `POST /hops/<role>`.

A hop works, calls the hops below it side by side, and answers when all have answered. A hop that has adopted the
deadline reads the time that is left from its request. It refuses at once what cannot be met (status 504), and stops its
work and its calls when that time is over. It sends what is left on with each call. A hop that has not adopted it goes
on to its end, as a handler in a thread does that never hears of its client again.

What a hop does when its client leaves is what every request that is no model call does: `ServerBehaviour`.
"""

from __future__ import annotations

import asyncio
import functools
import math
from typing import Any, Final

import httpx

from docmind_lab.core.clock import Clock
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.duration_headers import read_remaining_s, to_header
from docmind_lab.core.randomness import DrawKey
from docmind_lab.network.attempts import Attempt, LogicalCall, call_scope
from docmind_lab.network.transports import AsyncHttpxTransport
from docmind_lab.services.asgi_messages import Send, send_json
from docmind_lab.services.hosted_behaviour import HOPS_PATH, HopBehaviour, calls_below
from docmind_lab.services.hosts import DoorOfHost, ExchangeHost, PeerExchange, add_host
from docmind_lab.services.plan import ServiceRequest

_FLOOR_S: Final = PropagationPolicy().floor_s
_TIMED_OUT: Final = 504
_BAD_GATEWAY: Final = 502


class HopHost(ExchangeHost):
    """The server of the hops of one service."""

    def __init__(self, behaviour: HopBehaviour, door: DoorOfHost) -> None:
        super().__init__(behaviour, door)
        self._behaviour = behaviour

    async def serve(self, request: ServiceRequest, exchange: PeerExchange, send: Send) -> None:
        """Answer a request, until its work is over, whether or not its client is still there."""
        work = asyncio.ensure_future(self._answer(request, exchange))
        exchange.work = work
        if exchange.cut:  # before it began
            work.cancel()
        gone = asyncio.ensure_future(exchange.gone.wait())
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            delay_s = self._door.on_leave.delay_s(None, self._clock.now() - exchange.row.received_at)
            if not work.done() and math.isfinite(delay_s):
                await asyncio.wait((work,), timeout=delay_s)
                work.cancel()
            await asyncio.wait((work,))
            if work.cancelled():
                exchange.end_work("client_gone")
                return
            status, answer = work.result()
            exchange.end_work("ok" if status < 400 else "error")
            if not exchange.gone.is_set():
                await send_json(exchange.observe_send(send), status, answer)
        finally:
            gone.cancel()
            if exchange.work is not None:
                exchange.end_work("error")
            exchange.replied()

    # ---- the work of one hop

    async def _answer(self, request: ServiceRequest, exchange: PeerExchange) -> tuple[int, Any]:
        """Return the status and the body of the reply to a request."""
        deadline = self._deadline_of(request, exchange)
        if deadline is not None and deadline.remaining() <= _FLOOR_S:
            return _TIMED_OUT, {"error": f"{exchange.key.role} was not started: {deadline.remaining():.3f} s are left"}
        try:
            async with asyncio.timeout(None if deadline is None else deadline.remaining()):
                return await self._work(exchange, deadline)
        except TimeoutError:
            return _TIMED_OUT, {"error": f"{exchange.key.role} was stopped at the deadline of its request"}

    def _deadline_of(self, request: ServiceRequest, exchange: PeerExchange) -> Deadline | None:
        """Return the deadline that the hop holds to; None if the request carries none, or it has not adopted it."""
        left_s = read_remaining_s(request.headers) if self._behaviour.has_adopted(exchange.key) else None
        return None if left_s is None else Deadline(exchange.row.received_at + left_s, left_s, self._clock)

    async def _work(self, exchange: PeerExchange, deadline: Deadline | None) -> tuple[int, Any]:
        key = exchange.key
        await _wait(self._behaviour.work_s(key))
        calls = [self._call(exchange, role, step, deadline) for role, step in calls_below(key.role, key.step)]
        answers = await asyncio.gather(*calls)
        failures = [status for status, _ in answers if status >= 400]
        if failures:
            status = _TIMED_OUT if _TIMED_OUT in failures else _BAD_GATEWAY
            return status, {"error": f"{key.role}: {len(failures)} of {len(answers)} calls failed"}
        return 200, {"hops": [f"{key.role}/{key.step}", *(hop for _, answer in answers for hop in answer["hops"])]}

    async def _call(self, exchange: PeerExchange, role: str, step: str, deadline: Deadline | None) -> tuple[int, Any]:
        """Return the status and the body of one hop's reply below; 502 and nothing if there was none."""
        headers = {} if deadline is None else dict([to_header(deadline.remaining())])
        with call_scope(_call_of(exchange.row.run_id, exchange.row.call_id, exchange.key, role, step, self._clock)):
            try:
                response = await _client().post(f"{self._door.below_url}{role}", headers=headers)
                return response.status_code, response.json()
            except (httpx.HTTPError, ValueError):
                return _BAD_GATEWAY, {}


class _Unwatched:
    """Watches no attempts: a call between hops is in the log of the hop that is called."""

    def attempt_started(self, attempt: Attempt) -> None:
        """See `AttemptObserver`."""

    def attempt_ended(self, attempt: Attempt) -> None:
        """See `AttemptObserver`."""


_UNWATCHED = _Unwatched()


def _call_of(run_id: str, parent_call_id: str, key: DrawKey, role: str, step: str, clock: Clock) -> LogicalCall:
    return LogicalCall(
        run_id=run_id,
        call_id=f"peer/{role}/{step}",
        role=role,
        step=step,
        kind="peer",
        seed=key.seed,
        observer=_UNWATCHED,
        parent_call_id=parent_call_id,
        clock=clock,
    )


@functools.cache
def _client() -> httpx.AsyncClient:
    """Return the client of this process: its certificates take longer to load than a run in virtual time."""
    return httpx.AsyncClient(transport=AsyncHttpxTransport(), trust_env=False, timeout=None)


async def _wait(seconds: float) -> None:
    if math.isinf(seconds):
        await asyncio.get_running_loop().create_future()
    await asyncio.sleep(seconds)


add_host(__name__, HOPS_PATH, lambda: HopHost)
