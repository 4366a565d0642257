"""The server's end of one connection in virtual time, and one plan that is played over it without a thread.

h11 parses and writes, as it does behind the wall door: connections are kept alive, and a body without a length goes
out in chunks. What is done at each instant, and what the log's row says of it, is what the wall door does and says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote

import h11

from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.network.virtual_wire import Wire
from docmind_lab.services.log import RequestRow, RowOutcome
from docmind_lab.services.plan import RUN_IS_OVER, Chunk, Disconnect, Headers, Plan, ServiceRequest, Step, Wait
from docmind_lab.virtual_time import Alarm, VirtualClock

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


@dataclass(eq=False)
class PlanPlayer:
    """Plays one plan from `begin` on, and calls `ended` when it is over. behaviour: if its client leaves before."""

    plan: Plan
    row: RequestRow
    connection: HttpConnection
    clock: VirtualClock
    behaviour: ServerBehaviour
    ended: Callable[[PlanPlayer], None]
    _steps: list[Step] = field(default_factory=list, init=False)
    _wait: Wait | None = None
    _wait_begun_at: float = 0.0
    _due_at: float = 0.0
    _alarm: Alarm | None = None
    _answering: bool = False
    _client_gone: bool = False
    _has_begun: bool = False
    _ends_at_write: bool = False
    _notice: Alarm | None = None

    def begin(self, at: float, others: int = 0, since_s: float = 0.0) -> None:
        """Play from an instant on, all that is due by now at once. since_s: from the services' first request."""
        self._due_at, self._has_begun = at, True
        self._steps = list(reversed(self.plan.steps_beside(others, since_s)))
        self.row.fault = self.plan.fault_at(since_s)
        self._go_on()

    def client_left(self) -> None:
        """The client has left."""
        self._client_gone = True
        if self.row.outcome == "open":
            now = self.row.client_gone_at = self.clock.now()
            is_generating = self._answering or self.row.output_tokens > 0 or bool(self._wait and self._wait.tokens)
            phase = self.plan.phase(has_begun=self._has_begun, is_generating=is_generating)
            delay_s = self.behaviour.delay_s(phase, now - self.row.received_at)
            self._ends_at_write = self.behaviour.ends_at_next_write(phase)
            if delay_s == 0:
                self._noticed()
            elif not math.isinf(delay_s):
                self._notice = self.clock.call_at(now + delay_s, self._noticed)

    def _noticed(self) -> None:
        """The server notices that the client has left."""
        self._notice = None
        self._break_off("client_gone")

    def cut(self) -> None:
        """End it, since its run is over: an error if nothing has been sent, a closed connection otherwise."""
        if self.row.outcome != "open":
            return
        self._break_off("ended")
        if self._client_gone:
            return
        if self._answering:
            self.connection.drop()
        else:
            self.connection.reply(RUN_IS_OVER)

    # ---- the plan

    def _go_on(self) -> None:
        while self._steps:
            step = self._steps.pop()
            if isinstance(step, Wait):
                self._wait, self._wait_begun_at, self._due_at = step, self._due_at, self._due_at + step.seconds
                if self._due_at > self.clock.now():
                    if not math.isinf(self._due_at):
                        self._alarm = self.clock.call_at(self._due_at, self._waited)
                    return
                self._end_wait(self._due_at, math.inf)
            elif isinstance(step, Disconnect):
                self._close("error")
                if not self._client_gone:
                    self.connection.drop()
                return
            elif not self._client_gone:
                self._send(step)
            elif self._ends_at_write:
                self._noticed()
                return
        self._close("error" if (self.row.status or 0) >= 400 else "ok")
        if self._answering and not self._client_gone:
            self.connection.finish()

    def _waited(self) -> None:
        self._alarm = None
        self._end_wait(self._due_at, math.inf)
        self._go_on()

    def _end_wait(self, at: float, elapsed_s: float) -> None:
        """Note the tokens of the wait under way, of which so much has passed."""
        assert self._wait is not None
        tokens = self._wait.tokens_by(elapsed_s)
        self._wait = None
        if tokens:
            self.row.token_spans.append((self._wait_begun_at, at, tokens))
            self.row.output_tokens += tokens
            self.clock.note_effect()

    def _send(self, step: Headers | Chunk) -> None:
        if isinstance(step, Headers):
            self.row.status, self.row.first_byte_at, self._answering = step.status, self.clock.now(), True
        else:
            self.row.last_byte_at = self.clock.now()
        self.connection.send(step)
        self.clock.note_effect()

    def _break_off(self, outcome: RowOutcome) -> None:
        now = self.clock.now()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._wait is not None:
            self._end_wait(now, now - self._wait_begun_at)
        self._close(outcome)

    def _close(self, outcome: RowOutcome) -> None:
        self._steps.clear()
        if self._notice is not None:
            self._notice.cancel()
            self._notice = None
        self.row.outcome, self.row.ended_at = outcome, self.clock.now()
        self.ended(self)
