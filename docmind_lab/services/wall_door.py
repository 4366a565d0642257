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

With `slots`, the model server works on so many requests at once and the others wait, first come first served. The wait
counts from the receipt; a plan's own waits count from the instant its slot is had. A client that leaves the queue is
forgotten at once under `STOPS`; under `GOES_ON` its request keeps its place, and takes a slot for an answer that nobody
reads. A hang keeps its slot until its client leaves, or under `GOES_ON` until its run is over.
With `slots_of_run`, each run has that many slots and a queue to itself, as in virtual time, where it has the server to
itself: runs that go side by side do not wait for each other.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qs

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.services.asgi_messages import (
    CLIENT_PATIENCE_S,
    ConnectionDropped,
    Receive,
    Send,
    bounded,
    read_request,
    request_of_run,
    send_json,
    send_steps,
    start_of,
)
from docmind_lab.services.door import Door
from docmind_lab.services.hosts import DoorOfHost, ExchangeHost, Hosted, PeerExchange
from docmind_lab.services.log import RequestRow
from docmind_lab.services.plan import (
    RUN_IS_OVER,
    Chunk,
    Disconnect,
    Headers,
    Plan,
    ServiceRequest,
    Wait,
)
from docmind_lab.services.registry import HOSTS
from docmind_lab.services.slots import SlotQueue, Turn

# Waiting for ever is done in bounded steps, so that the loop's timer arithmetic stays finite.
_LONGEST_WAIT_S = 3600.0

_REMEMBERED_RUNS = 10_000


@dataclass(eq=False)
class Playing:
    """One plan under way. others: model calls beside it as it starts. stopped: the server knows its client left."""

    plan: Plan
    row: RequestRow
    starts_at: float
    others: int = 0
    may_start: asyncio.Event = field(default_factory=asyncio.Event)
    client_gone: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    ends_at_write: bool = False
    is_generating: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ends(self) -> list[asyncio.Event]:
        """What ends a request before its plan does."""
        return [self.ended, self.stopped]


@dataclass
class WallDoor(Door):
    """An ASGI application in front of the services, otherwise as `Door`.

    Args:
        slots_of_run: Whether the limit of slots is of each run.
        clock: Of the log.
        client_patience_s: How long the body of a request, and a client that does not read, are waited for.
        below_url: Where the hops of the next level are.
        clock_ahead_s: How far the clock of this process is ahead of the machine's, which is taken off the instants of
            the log.
    """

    slots_of_run: bool = False
    clock: Clock = WALL
    client_patience_s: float = CLIENT_PATIENCE_S
    below_url: str = ""
    clock_ahead_s: float = 0.0
    _queues: dict[str, SlotQueue[Playing]] = field(default_factory=dict)
    _first_request_at: dict[str, float] = field(default_factory=dict)
    _playing: set[Playing] = field(default_factory=set)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _over: dict[str, None] = field(default_factory=dict)
    # One thread: the vector engine is not made for several, and the event loop's timers stay exact meanwhile.
    _planner: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="plan"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._queue_of("")  # refuses a limit that is none
        self._hosts: dict[str, ExchangeHost] = {}
        self._telling: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        if scope["type"] != "http":
            return
        received_at = self.clock.now()
        send = bounded(send, self.client_patience_s)
        try:
            async with asyncio.timeout(self.client_patience_s):
                request = await read_request(scope, receive)
        except TimeoutError:
            await send_json(send, 408, {"error": "the body did not come in time"}, (("connection", "close"),))
            return
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
        self._first_request_at.setdefault(self._key_of(request.tag("run-id")), received_at)
        playing = Playing(plan, self.log.received(request, plan, received_at), starts_at=received_at)
        self._playing.add(playing)
        watcher = asyncio.create_task(self._watch(receive, playing))
        try:
            if not plan.takes_slot or await self._has_slot(playing):
                await self._play(plan, playing, send)
            else:
                await self._end(playing, send, answering=False)
        finally:
            watcher.cancel()
            self._close(playing, "error")
            self._playing.discard(playing)
            self._leave_queue(playing)
            await self._tell_changed()

    async def _tell_changed(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _serve_hosted(
        self, hosted: Hosted, request: ServiceRequest, received_at: float, receive: Receive, send: Send
    ) -> None:
        if hosted.path not in self._hosts:
            # In the planner's thread: a server may take a second to load, and the loop's timers stay exact meanwhile.
            make = await asyncio.get_running_loop().run_in_executor(self._planner, HOSTS[hosted.path])
            door = DoorOfHost(self.log, self.clock, self._hosted_ended, self.behaviour, self.below_url)
            self._hosts.setdefault(hosted.path, make(hosted, door))
        host = self._hosts[hosted.path]
        if refusal := host.refusal_of(request):
            await send_json(send, 400, {"error": refusal})
            return
        exchange = host.received(request, received_at)
        watcher = asyncio.create_task(_until_left(receive, exchange))
        try:
            await host.serve(request, exchange, send)
        finally:
            watcher.cancel()
        if exchange.cut:
            raise ConnectionDropped

    def _hosted_ended(self) -> None:
        telling = asyncio.ensure_future(self._tell_changed())
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _has_slot(self, playing: Playing) -> bool:
        """Whether the request got a slot, after waiting for it; False when the request was ended before."""
        self._letstart_of(self._queue_of(playing.row.run_id).arrive(playing, playing.row.received_at))
        if playing.may_start.is_set():
            return True
        try:
            await _first_of(playing.may_start, *playing.ends)
            return not any(event.is_set() for event in playing.ends)
        finally:
            self._note_queue_wait(playing)

    def _key_of(self, run_id: str) -> str:
        """Who shares slots and time with the run: nobody, or all."""
        return run_id if self.slots_of_run else ""

    def _queue_of(self, run_id: str) -> SlotQueue[Playing]:
        key = self._key_of(run_id)
        if key not in self._queues:
            self._queues[key] = SlotQueue(self.slots)
        return self._queues[key]

    def _leave_queue(self, playing: Playing) -> None:
        run_id = playing.row.run_id
        queue = self._queue_of(run_id)
        self._letstart_of(queue.leave(playing, self.clock.now()))
        if self.slots_of_run and not queue.served and not queue.waiting and run_id in self._over:
            del self._queues[run_id]
            self._first_request_at.pop(run_id, None)

    def _letstart_of(self, turns: Iterable[Turn[Playing]]) -> None:
        for turn in turns:
            turn.request.starts_at = turn.starts_at
            turn.request.row.queue_wait_s = turn.starts_at - turn.request.row.received_at
            turn.request.others = len(self._queue_of(turn.request.row.run_id).served) - 1
            turn.request.may_start.set()

    def _note_queue_wait(self, playing: Playing) -> None:
        """What a request has waited so far, if it still does."""
        if playing in self._queue_of(playing.row.run_id).waiting:
            playing.row.queue_wait_s = self.clock.now() - playing.row.received_at

    async def _play(self, plan: Plan, playing: Playing, send: Send) -> None:
        row, due_at, answering = playing.row, playing.starts_at, False
        since_s = due_at - self._first_request_at.get(self._key_of(row.run_id), due_at)
        row.fault = plan.fault_at(since_s)
        for step in plan.steps_beside(playing.others, since_s):
            if isinstance(step, Wait):
                begun_at, due_at = due_at, due_at + step.seconds
                playing.is_generating = playing.is_generating or answering or step.tokens > 0
                completed = await self._wait_until(due_at, playing)
                now = due_at if completed else self.clock.now()
                tokens = step.tokens_by(math.inf if completed else now - begun_at)
                if tokens:
                    row.token_spans.append((begun_at, now, tokens))
                    row.output_tokens += tokens
                if not completed:
                    await self._end(playing, send, answering=answering)
                    return
            elif isinstance(step, Disconnect):
                self._close(playing, "error")
                if playing.client_gone.is_set():
                    return
                raise ConnectionDropped
            elif playing.client_gone.is_set():
                if playing.ends_at_write:
                    self._close(playing, "client_gone")
                    return
            elif isinstance(step, Headers):
                row.status, answering = step.status, True
                row.first_byte_at = self.clock.now()
                await send(start_of(step))
            elif isinstance(step, Chunk):
                await send({"type": "http.response.body", "body": step.data, "more_body": True})
                row.last_byte_at = self.clock.now()
        if answering and not playing.client_gone.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        self._close(playing, "error" if (row.status or 0) >= 400 else "ok")

    async def _wait_until(self, due_at: float, playing: Playing) -> bool:
        """Whether the instant was reached; False when the request was ended before."""
        while (left_s := due_at - self.clock.now()) > 0:
            if any(event.is_set() for event in playing.ends):
                return False
            await _first_of(*playing.ends, limit_s=min(left_s, _LONGEST_WAIT_S))
        return True

    async def _watch(self, receive: Receive, playing: Playing) -> None:
        """Notice that the client leaves, and have the work end when the server would."""
        while (await receive())["type"] != "http.disconnect":
            pass
        now = self.clock.now()
        if playing.row.outcome == "open":
            playing.row.client_gone_at = now
        phase = playing.plan.phase(
            has_begun=not playing.plan.takes_slot or playing.may_start.is_set(), is_generating=playing.is_generating
        )
        delay_s = self.behaviour.delay_s(phase, now - playing.row.received_at)
        playing.ends_at_write = self.behaviour.ends_at_next_write(phase)
        playing.client_gone.set()
        if delay_s > 0:
            if math.isinf(delay_s):
                return
            await asyncio.sleep(delay_s)
        playing.stopped.set()

    async def _end(self, playing: Playing, send: Send, *, answering: bool) -> None:
        """End a request before its plan does: an error if nothing has been sent, a closed connection otherwise."""
        self._close(playing, "ended" if playing.ended.is_set() else "client_gone")
        if playing.client_gone.is_set():
            return
        if answering:
            raise ConnectionDropped
        await send_steps(send, RUN_IS_OVER)

    def _close(self, playing: Playing, outcome: Any) -> None:
        if playing.row.outcome == "open":
            now = self.clock.now()
            # A request that never had a slot has waited until its end, to the last digit.
            if playing in self._queue_of(playing.row.run_id).waiting:
                playing.row.queue_wait_s = now - playing.row.received_at
            playing.row.outcome = outcome
            playing.row.ended_at = now

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
            for playing in self._playing:
                if playing.row.run_id == run_id:
                    playing.ended.set()
            for host in self._hosts.values():
                host.end_run(run_id)
            await self._until_quiet(run_id, 5.0)
            for host in self._hosts.values():
                await host.forget(run_id)
            self.log.forget(run_id)
            if self.slots_of_run and not any(playing.row.run_id == run_id for playing in self._playing):
                self._queues.pop(run_id, None)
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
        for playing in self._queue_of(run_id).waiting:
            self._note_queue_wait(playing)
        rows = [asdict(row.moved(-self.clock_ahead_s)) for row in self.log.rows(run_id)]
        now = self.clock.now() - self.clock_ahead_s
        await send_json(send, 200, {"run_id": run_id, "now": now, "rows": rows})

    async def _until_quiet(self, run_id: str, limit_s: float) -> None:
        try:
            async with asyncio.timeout(limit_s), self._changed:
                await self._changed.wait_for(lambda: self.log.open_rows(run_id) == 0)
        except TimeoutError:
            pass


async def _first_of(*events: asyncio.Event, limit_s: float | None = None) -> None:
    """Wait until one of some events, for so many seconds at the most."""
    waiters = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


async def _until_left(receive: Receive, exchange: PeerExchange) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    exchange.client_left()
