"""One request under way: its limits, what is recorded of it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2

from docmind_lab.core.addresses import is_loopback
from docmind_lab.core.deadlines import CappedTimeout, Deadline, current_deadline, deadline_scope, in_force
from docmind_lab.core.holds import current_hold
from docmind_lab.network.attempts import (
    HEADER_PREFIX,
    Attempt,
    AttemptOutcome,
    attempt_scope,
    current_attempt,
    current_call,
)
from docmind_lab.network.deadline_headers import default_port, wire_in_force
from docmind_lab.network.taps import Tapping

_TIMEOUT_NAMES = ("connect", "read", "write", "pool")
_SSE_END = b"data: [DONE]"

_TIMEOUTS = (httpcore.TimeoutException, httpcore2.TimeoutException, httpx.TimeoutException, httpx2.TimeoutException)

Admission = Callable[[str], None]  # raises for a URL that may not be reached
Surfacing = Callable[[Attempt | None, Deadline | None], BaseException]
"""Returns the error to raise when the deadline, or the caller of the run, cuts a request; its attempt, if it is one."""


def admit_all(url: str) -> None:
    """Admit every URL: for clients whose endpoint was checked when they were built."""


def _errors_of(core: ModuleType) -> tuple[type[Exception], ...]:
    return core.TimeoutException, core.NetworkError, core.ProtocolError, core.UnsupportedProtocol, core.ProxyError


_OF_HTTPCORE, _OF_HTTPCORE2 = _errors_of(httpcore), _errors_of(httpcore2)


@contextlib.contextmanager
def library_errors() -> Iterator[None]:
    """Turn an exception of httpcore or httpcore2 into that of httpx or httpx2 of the same name."""
    try:
        yield
    except (*_OF_HTTPCORE, *_OF_HTTPCORE2) as error:
        web = httpx if isinstance(error, _OF_HTTPCORE) else httpx2
        for kind in type(error).__mro__:
            translated = getattr(web, kind.__name__, None)
            if isinstance(translated, type) and issubclass(translated, Exception):
                raise translated(str(error)) from error
        raise


_PREFIX = HEADER_PREFIX.encode()


class Exchange:
    """One request under way: its attempt, and how the attempt ends. The request itself is not changed.

    It is the block of one operation of the request at a time, under its attempt and its deadline; an exception ends the
    attempt and passes on.

    surfacing: what a cut by the deadline is raised as; left out, the library's own timeout. url: where the request
    goes, if not where it says. read_timeout_s: bounds each single wait.
    """

    def __init__(
        self,
        request: Any,
        admit: Admission,
        surfacing: Surfacing | None = None,
        *,
        url: Any = None,
        read_timeout_s: float | None = None,
    ) -> None:
        self.url = request.url if url is None else url
        if admit is not admit_all:
            admit(str(self.url))
        self._surfacing = surfacing
        self.timeouts: dict[str, float | None] = dict(request.extensions.get("timeout", {}))
        self.deadline = deadline = current_deadline()
        self._hold = current_hold()
        if deadline is not None:
            own_timeouts = self.timeouts
            # Most clients wait equally long for everything: one is made for all that are equal.
            capped = {own_s: CappedTimeout.of(own_s, deadline) for own_s in {*map(own_timeouts.get, _TIMEOUT_NAMES)}}
            self.timeouts = {name: capped[own_timeouts.get(name)] for name in _TIMEOUT_NAMES}
        call = current_call()
        for bound_s in (read_timeout_s, None if call is None else call.read_timeout_s):
            if bound_s is not None:
                own = ((name, self.timeouts.get(name)) for name in _TIMEOUT_NAMES)
                self.timeouts = {name: bound_s if own_s is None else min(own_s, bound_s) for name, own_s in own}
        self._request = request
        self._tags: tuple[tuple[bytes, bytes], ...] = ()
        self.attempt: Attempt | None = None
        self.tail = b""
        self._is_head_sent = False
        self._tapping: Tapping | None = None
        if call is not None:
            self._tapping = Tapping.of(call, request)
            call.attempts += 1
            read_s = self.timeouts.get("read")
            self.attempt = Attempt(
                call=call,
                number=call.attempts,
                started_at=call.clock.now(),
                timeout_s=math.inf if read_s is None else float(read_s),
                deadline=deadline,
                capped=deadline is not None or call.cap_from_deadline,
            )
            call.observer.attempt_started(self.attempt)
            if is_loopback(self.url.host):
                tags = call.headers(call.attempts)
                self._tags = tuple((name.encode("ascii"), value.encode("ascii")) for name, value in tags.items())

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that go out, raw: those of the request, without tags of another one, and the attempt's own.

        With a deadline on the wire, a host that is named gets the time left, and no other host does.
        """
        # What somebody copies off a request of a run may lead to another machine.
        headers = [item for item in self._request.headers.raw if not item[0].lower().startswith(_PREFIX)]
        wire = wire_in_force()
        if wire is not None:
            host, port = self.url.raw_host.decode("ascii"), self.url.port or default_port(self.url.scheme)
            deadline = self.deadline if self._hold is None else self._hold.in_force
            headers = wire.outgoing_headers(headers, host, port, deadline)
        return [*headers, *self._tags]

    def core_request(self, core: ModuleType, request: Any, content: Any) -> Any:
        """Return the request for httpcore, with timeouts capped by the deadline."""
        to = self.url
        url = core.URL(scheme=to.raw_scheme, host=to.raw_host, port=to.port, target=to.raw_path)
        extensions = {**request.extensions, "timeout": self.timeouts}
        return core.Request(
            method=request.method.encode(),
            url=url,
            headers=self.headers,
            content=content,
            extensions=extensions,
        )

    def note_sent(self, part: bytes) -> None:
        """Record bytes that another library sends itself: a head first, which is no body."""
        if self.attempt is not None:
            self.attempt.note_sent()
        if self._tapping is not None:
            if self._is_head_sent:
                self._tapping.traffic.sent += part
            else:
                self._tapping.traffic.sent += part.partition(b"\r\n\r\n")[2]
        self._is_head_sent = True

    def note_response(self, status: int, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Record the status line of the response, and its headers if there are taps."""
        if self.attempt is not None:
            self.attempt.status = status
        if self._tapping is not None:
            self._tapping.traffic.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers
            }

    def note_body(self, part: bytes) -> None:
        """Record bytes of the response body."""
        if self.attempt is not None:
            self.tail = (self.tail + part)[-64:]
        if self._tapping is not None:
            self._tapping.traffic.received.append(part)

    def complete(self) -> None:
        """End the attempt: the body has been read to its end."""
        if self.attempt is not None:
            failed = self.attempt.status is not None and self.attempt.status >= 400
            if failed:
                self.attempt.error_type = f"HTTP {self.attempt.status}"
            self._end("error" if failed else "ok")

    def note_closed(self) -> None:
        """End the attempt: the client closed the response.

        Complete if it had read up to the end marker of an event stream, or if it had seen an error status: a client
        that tries again does not read what came with it.
        """
        if self.attempt is None:
            return
        if _SSE_END in self.tail or (self.attempt.status or 0) >= 400:
            self.complete()
        else:
            self._end("cancelled")

    def __enter__(self) -> None:
        # A body may be read where another deadline, or none, is in force: the request's own goes with it.
        is_new = self.attempt is not None or current_attempt() is not None
        self._attempt_scope = attempt_scope(self.attempt) if is_new else None
        self._deadline_scope = None if self.deadline is in_force().deadline else deadline_scope(self.deadline)
        if self._attempt_scope is not None:
            self._attempt_scope.__enter__()
        if self._deadline_scope is not None:
            self._deadline_scope.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if self._deadline_scope is not None:
            self._deadline_scope.__exit__(None, None, None)
        if self._attempt_scope is not None:
            self._attempt_scope.__exit__(None, None, None)
        if error is not None:
            self.note_failure(error)

    def note_failure(self, error: BaseException) -> None:
        """End the attempt with an operation's error. Raises: `surfacing`'s error if the deadline cut it."""
        if isinstance(error, _TIMEOUTS):
            self._end("timeout", error)
            if self._surfacing is not None and self._is_cut():
                raise self._surfacing(self.attempt, self.deadline) from error
        elif isinstance(error, Exception) and self._is_cancelled():
            # `Hold.cancel` has closed the connection under the request.
            self._end("cancelled", error)
            if self._surfacing is not None:
                raise self._surfacing(self.attempt, self.deadline) from error
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            self._end("cancelled", error)
        elif not isinstance(error, StopIteration | StopAsyncIteration):
            self._end("error", error)

    def _is_cut(self) -> bool:
        deadline = None if self.deadline is None else self.deadline.in_force
        return deadline is not None and deadline.ends_a_wait

    def _is_cancelled(self) -> bool:
        return self._hold is not None and self._hold.was_cancelled

    def _end(self, outcome: AttemptOutcome, error: BaseException | None = None) -> None:
        if self.attempt is None:
            return
        self.attempt.end(outcome, error)
        if self._tapping is not None:
            self._tapping.ended(self.attempt)
