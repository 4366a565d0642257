"""Servers in virtual time: their end of a connection, and an asyncio server on an event loop of the run.

h11 parses and writes, as it does behind the wall door: connections are kept alive, and a body without a length goes
out in chunks. The loop of an asyncio server is a thread of the run like any other, so its waits are virtual. It begins
with the first request and ends with the run.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote

import h11

from docmind_lab.network.virtual_wire import Wire
from docmind_lab.services.asgi_messages import Message, Send
from docmind_lab.services.hosts import ExchangeHost, PeerExchange
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest, Step
from docmind_lab.virtual_time import VirtualClock

_NOT_HTTP = b"Invalid HTTP request received."


def fail_run(clock: VirtualClock, error: BaseException) -> None:
    """End the run by a defect of a service: its client would take that for a failed call, try again and hide it."""

    def fail() -> None:
        raise error

    clock.call_at(clock.now(), fail)


Serve = Callable[[ServiceRequest, "HttpConnection"], None]
"""Takes a request and the connection that its reply goes to."""


class HttpConnection:
    """One kept-alive connection.

    serve: called for each request as soon as it is all there. on_send: told of each head of a reply and each part of
    its body as it is sent; None for nobody.
    """

    def __init__(self, wire: Wire, serve: Serve, on_send: Callable[[Headers | Chunk], object] | None = None) -> None:
        self._wire, self._serve, self.on_send = wire, serve, on_send
        self._http = h11.Connection(h11.SERVER)
        self._head: h11.Request | None = None
        self._body: list[bytes] = []
        self._client_left: Callable[[], None] | None = None

    # ---- what the wire tells

    def received(self, data: bytes) -> None:
        """Bytes of the client; a request that they complete is served before this returns."""
        self._http.receive_data(data)
        self._advance()

    def client_left(self) -> None:
        """The client closed the connection: the exchange under way hears of it. A part of a request was never one."""
        notice, self._client_left = self._client_left, None
        if notice is not None:
            notice()

    def _advance(self) -> None:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                headers = (("content-type", "text/plain; charset=utf-8"), ("connection", "close"))
                self.reply((Headers(400, headers), Chunk(_NOT_HTTP)))
                return
            if isinstance(event, h11.Request):
                self._head, self._body = event, []
            elif isinstance(event, h11.Data):
                self._body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._serve(self._request(), self)
            else:
                return  # more data is needed, or this reply first

    def _request(self) -> ServiceRequest:
        head = self._head
        assert head is not None, "h11 gives the head of a request before its end"
        path, _, query = head.target.partition(b"?")
        return ServiceRequest(
            method=head.method.decode(),
            path=unquote(path.decode("ascii")),
            headers={name.decode(): value.decode("latin-1") for name, value in head.headers},
            body=b"".join(self._body),
            query=query.decode("ascii"),
        )

    # ---- what whoever serves says

    def attend(self, client_left: Callable[[], None]) -> None:
        """Have `client_left` called if the client leaves before the reply is complete."""
        self._client_left = client_left

    def send(self, step: Headers | Chunk) -> None:
        """Send the head of a reply or a part of its body."""
        if self.on_send is not None:
            self.on_send(step)
        event: h11.Response | h11.Data
        if isinstance(step, Headers):
            event = h11.Response(status_code=step.status, headers=list(step.headers))
        else:
            event = h11.Data(data=step.data)
        self._wire.send(self._http.send(event) or b"")

    def finish(self) -> None:
        """The reply is complete; the connection takes the next request."""
        self._wire.send(self._http.send(h11.EndOfMessage()) or b"")
        self._client_left = None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._advance()
        else:
            self.drop()

    def drop(self) -> None:
        """Close the connection, even in the middle of a reply."""
        self._client_left = None
        self._wire.hang_up()

    def reply(self, steps: tuple[Step, ...]) -> None:
        """A whole reply at once."""
        for step in steps:
            assert isinstance(step, Headers | Chunk)
            self.send(step)
        self.finish()


class VirtualHost:
    """A server of one run, used only by threads of that run."""

    def __init__(self, host: ExchangeHost, clock: VirtualClock, name: str) -> None:
        self._host, self._clock = host, clock
        self._loop = asyncio.new_event_loop()
        self._serving: dict[asyncio.Task[None], None] = {}
        threading.Thread(target=self._serve_until_the_end, name=name, daemon=True).start()

    def _serve_until_the_end(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            # The SDK's queues take locks of their own when their coroutines are thrown away, and would wait for them
            # in real time; cancelled, they let go of everything. Nothing in this waits for an instant.
            self._loop.run_until_complete(self._close())

    async def _close(self) -> None:
        await self._host.aclose()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def serve(self, request: ServiceRequest, connection: HttpConnection) -> None:
        """Start to answer a request over the connection, and return at once."""
        exchange = self._host.received(request, self._clock.now())
        connection.attend(partial(self._on_loop, exchange.client_left))
        self._on_loop(partial(self._start_serving, request, exchange, connection))

    def end_run(self, run_id: str) -> None:
        """Stop everything that is still done for a run that is over."""
        self._on_loop(partial(self._host.end_run, run_id))

    def _on_loop(self, function: Callable[[], None]) -> None:
        # A loop that ended with its run has nobody to serve. In no context of the client's: what is in force around
        # its call is no business of a server's.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, context=contextvars.Context())

    def _start_serving(self, request: ServiceRequest, exchange: PeerExchange, connection: HttpConnection) -> None:
        task = self._loop.create_task(self._host.serve(request, exchange, _sender(connection, self._clock)))
        self._serving[task] = None
        task.add_done_callback(partial(self._end_serving, exchange, connection))

    def _end_serving(self, exchange: PeerExchange, connection: HttpConnection, task: asyncio.Task[None]) -> None:
        del self._serving[task]
        self._clock.note_effect()
        if exchange.cut:
            connection.drop()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            fail_run(self._clock, error)


def _sender(connection: HttpConnection, clock: VirtualClock) -> Send:
    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = ((name.decode(), value.decode("latin-1")) for name, value in message["headers"])
            connection.send(Headers(message["status"], tuple(headers)))
        elif message["type"] == "http.response.body":
            if message.get("body"):
                connection.send(Chunk(message["body"]))
            if not message.get("more_body"):
                connection.finish()
        clock.note_effect()

    return send
