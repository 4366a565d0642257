"""The server's end of one connection in virtual time.

h11 parses and writes, as it does behind the wall door: connections are kept alive, and a body without a length goes
out in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import h11

from docmind_lab.network.virtual_wire import Wire
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
                self._refuse()
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

    def _refuse(self) -> None:
        headers = (("content-type", "text/plain; charset=utf-8"), ("connection", "close"))
        self.reply((Headers(400, headers), Chunk(_NOT_HTTP)))

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
