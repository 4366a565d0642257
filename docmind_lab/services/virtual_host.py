"""An asyncio server in virtual time: on an event loop of the run, behind the virtual door.

The loop is a thread of the run like any other, so its waits are virtual. Requests are handed to it, and what it sends
goes over the connection that the request came by. It begins with the first request and ends with the run.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial

from docmind_lab.services.asgi_messages import Message, Send
from docmind_lab.services.hosts import ExchangeHost, PeerExchange
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest
from docmind_lab.services.virtual_http import HttpConnection, fail_run
from docmind_lab.virtual_time import VirtualClock


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
