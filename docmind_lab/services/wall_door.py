"""The wall door: plays plans over real sockets, as an ASGI application.

    /v1/…                          the model server
    /collections…                  the vector store
    /a2a/<peer>                    a peer agent: the A2A SDK's own server (systems/peers)
    /hops/<role>                   a service that calls further ones (systems/hops)
    /endpoints/<host>/…            another service that a graph calls (services/endpoints.py)
    /run/<run>/<seed>/<role>/…     any of these, for a client that cannot set the headers that tag a request
    GET    /log?run_id=R           rows of the service's own log; wait_quiet_s=S waits until the run has no open request
    DELETE /log?run_id=R           the run is over: cut what is open, forget its rows, refuse its orphans

A client that goes away is noticed at once. What becomes of its request is the `behaviour`: under `STOPS` it ends there,
under `GOES_ON` the plan is played to its end and nobody listens, as many real model servers do.

With `slots_of_run`, each run has that many slots and a queue to itself, as in virtual time, where it has the server to
itself: runs that go side by side do not wait for each other.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qs

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.services.asgi_messages import (
    ConnectionDropped,
    Message,
    Receive,
    Send,
    read_request,
    request_of_run,
    send_json,
    send_steps,
    start_of,
)
from docmind_lab.services.door import Door
from docmind_lab.services.hosts import HOSTS, DoorOfHost, ExchangeHost, Hosted
from docmind_lab.services.plan import RUN_IS_OVER, Chunk, Headers, ServiceRequest
from docmind_lab.services.plan_player import LoopClock, PlanPlayer

_REMEMBERED_RUNS = 10_000


class _Reply:
    """A reply on its way out, in the order in which it is sent. None ends it."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self.is_dropped = False

    def send(self, step: Headers | Chunk) -> None:
        if isinstance(step, Headers):
            self._messages.put_nowait(start_of(step))
        else:
            self._messages.put_nowait({"type": "http.response.body", "body": step.data, "more_body": True})

    def finish(self) -> None:
        self._messages.put_nowait({"type": "http.response.body", "body": b"", "more_body": False})

    def drop(self) -> None:
        self.is_dropped = True

    def end(self) -> None:
        self._messages.put_nowait(None)

    async def go_out(self, send: Send) -> None:
        """Send what there is until the end."""
        while (message := await self._messages.get()) is not None:
            await send(message)


@dataclass
class WallDoor(Door):
    """An ASGI application in front of the services, otherwise as `Door`.

    Args:
        slots_of_run: Whether the limit of slots is of each run.
        clock: Of the log.
        below_url: Where the hops of the next level are.
        clock_ahead_s: How far the clock of this process is ahead of the machine's, which is taken off the instants of
            the log.
    """

    slots_of_run: bool = False
    clock: Clock = WALL
    below_url: str = ""
    clock_ahead_s: float = 0.0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _over: dict[str, None] = field(default_factory=dict)
    # One thread: the vector engine is not made for several, and the event loop's timers stay exact meanwhile.
    _planner: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="plan"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hosts: dict[str, ExchangeHost] = {}
        self._telling: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        if scope["type"] != "http":
            return
        received_at = self.clock.now()
        request = await read_request(scope, receive)
        if request is None:
            return
        request = request_of_run(request)
        if request.path == "/log":
            await self._serve_log(request, send)
            return
        if request.tag("run-id") in self._over:
            await send_steps(send, RUN_IS_OVER)
            return
        if (hosted := self.hosted_at(request.path)) is not None:
            await self._serve_hosted(hosted, request, received_at, receive, send)
            return
        service = self.service_of(request)
        plan = await asyncio.get_running_loop().run_in_executor(self._planner, service.plan, request)
        if request.tag("run-id") in self._over:  # it ended while the plan was made
            await send_steps(send, RUN_IS_OVER)
            return
        reply = _Reply()
        player = self._receive(request, plan, received_at, reply, LoopClock(self.clock))
        watcher = asyncio.create_task(_until_left(receive, player.client_left))
        self._start(player)
        try:
            await reply.go_out(send)
        except BaseException:
            player.fail()
            raise
        finally:
            watcher.cancel()
        if reply.is_dropped:
            raise ConnectionDropped

    async def _serve_hosted(
        self, hosted: Hosted, request: ServiceRequest, received_at: float, receive: Receive, send: Send
    ) -> None:
        if hosted.path not in self._hosts:
            # In the planner's thread: a server may take a second to load, and the loop's timers stay exact meanwhile.
            make = await asyncio.get_running_loop().run_in_executor(self._planner, HOSTS[hosted.path])
            door = DoorOfHost(self.log, self.clock, self._tell_changed, self.behaviour, self.below_url)
            self._hosts.setdefault(hosted.path, make(hosted, door))
        host = self._hosts[hosted.path]
        if refusal := host.refusal_of(request):
            await send_json(send, 400, {"error": refusal})
            return
        exchange = host.received(request, received_at)
        watcher = asyncio.create_task(_until_left(receive, exchange.client_left))
        try:
            await host.serve(request, exchange, send)
        finally:
            watcher.cancel()
        if exchange.cut:
            raise ConnectionDropped

    def _tell_changed(self) -> None:
        telling = asyncio.ensure_future(self._notify_all())
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _notify_all(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _key_of(self, run_id: str) -> str:
        return run_id if self.slots_of_run else ""

    def _ended(self, player: PlanPlayer) -> None:
        super()._ended(player)
        reply = player.connection
        assert isinstance(reply, _Reply)
        # After what is sent at this instant.
        asyncio.get_running_loop().call_soon(reply.end)
        self._drop_queue(player.row.run_id)

    def _drop_queue(self, run_id: str) -> None:
        """Drop the queue of a run that is over when nothing of it is under way."""
        queue = self._queues.get(run_id)
        if self.slots_of_run and run_id in self._over and queue and not queue.served and not queue.waiting:
            del self._queues[run_id]
            self._first_request_at.pop(run_id, None)

    async def _serve_log(self, request: ServiceRequest, send: Send) -> None:
        query = parse_qs(request.query)
        run_id = query.get("run_id", [""])[0]
        if request.method == "DELETE" and not run_id:
            await send_json(send, 400, {"error": "run_id must name the run that is over"})
            return
        if request.method == "DELETE":
            self._over[run_id] = None
            while len(self._over) > _REMEMBERED_RUNS:
                del self._over[next(iter(self._over))]
            self._cut(run_id)
            for host in self._hosts.values():
                host.end_run(run_id)
            await self._until_quiet(run_id, 5.0)
            for host in self._hosts.values():
                await host.forget(run_id)
            self.log.forget(run_id)
            self._drop_queue(run_id)
            await send_json(send, 200, {"run_id": run_id, "forgotten": True})
            return
        try:
            wait_quiet_s = float(query.get("wait_quiet_s", ["0"])[0])
        except ValueError:
            wait_quiet_s = math.nan
        if not 0 <= wait_quiet_s < math.inf:
            await send_json(send, 400, {"error": "wait_quiet_s must be a finite number of seconds from 0 up"})
            return
        await self._until_quiet(run_id, wait_quiet_s)
        self._note_queue_waits(run_id, self.clock.now())
        rows = [asdict(row.moved(-self.clock_ahead_s)) for row in self.log.rows(run_id)]
        now = self.clock.now() - self.clock_ahead_s
        await send_json(send, 200, {"run_id": run_id, "now": now, "rows": rows})

    async def _until_quiet(self, run_id: str, limit_s: float) -> None:
        try:
            async with asyncio.timeout(limit_s), self._changed:
                await self._changed.wait_for(lambda: self.log.open_rows(run_id) == 0)
        except TimeoutError:
            pass


async def _until_left(receive: Receive, client_left: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    client_left()
