"""Holds requests of urllib3 (and so of requests) and of aiohttp to the deadline in force.

urllib3 reads from a socket, so the socket is wrapped: each send and each receive waits no longer than what is left.
aiohttp has a timeout for a whole request, body included; it is given what is left. Name look-up and the wait for a
pooled connection of urllib3 have no limit there.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import socket
import weakref
from typing import Any

from docmind_lab.core.deadlines import CappedTimeout, Deadline
from docmind_lab.core.holds import Hold, blocking_on, current_hold
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.recorder import current_recorder
from docmind_lab.network.replacements import Replacements


def _hold_in_force() -> tuple[Hold, Deadline] | None:
    hold = current_hold()
    deadline = None if hold is None else hold.in_force
    if hold is None or current_recorder() is not None:
        return None
    if hold.only_tells and hold.was_cancelled:
        hold.refuse_if_over()
    return None if deadline is None else (hold, deadline)


def _is_late(hold: Hold) -> bool:
    deadline = hold.in_force
    return deadline is not None and deadline.ends_a_wait


class _HeldSocket:
    """A blocking socket whose waits are bounded by the hold in force; everything else is the socket's own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sendall(self, data: Any, *arguments: Any) -> Any:
        with _bounded(self._inner):
            return self._inner.sendall(data, *arguments)

    def makefile(self, mode: str = "r", buffering: int | None = None, **options: Any) -> Any:
        if mode != "rb":
            return self._inner.makefile(mode, buffering, **options)
        return io.BufferedReader(_HeldFile(self._inner))


class _HeldFile(io.RawIOBase):
    """The readable end of a held socket."""

    def __init__(self, inner: Any) -> None:
        self._socket, self._raw = inner, inner.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        bounded = _bounded(self._socket)
        try:
            with bounded:
                count: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            if not bounded.is_lifted:
                raise
            # A file of a socket reads no more once it has timed out; another one of the same socket does.
            self._raw.close()
            self._raw = self._socket.makefile("rb", buffering=0)
            own_s = self._socket.gettimeout()
            self._socket.settimeout(None if own_s is None else own_s - bounded.allowed_s)
            try:
                return self.readinto(buffer)
            finally:
                self._socket.settimeout(own_s)
        return count

    def close(self) -> None:
        # The socket counts its files, and is closed with the last one.
        self._raw.close()
        super().close()


class _bounded:  # noqa: N801 - used as a function
    """Bound one wait on a socket by the hold in force. Raises: RunCut if the deadline or the caller ends it."""

    def __init__(self, inner: Any) -> None:
        self._socket, self.is_lifted = inner, False

    def __enter__(self) -> None:
        self._held, hold = _hold_in_force(), current_hold()
        # The hold of a task may be cancelled after its deadline has been lifted.
        self._lifted = hold if self._held is None and hold is not None and hold.only_tells else None
        if self._held is None and self._lifted is None:
            return
        self._waiting = blocking_on(self._shut_down)
        self._waiting.__enter__()
        if self._held is None:
            return
        hold, deadline = self._held
        self._timeout_s = self.allowed_s = self._socket.gettimeout()
        if hold.policy.cap == "total":
            self.allowed_s = deadline.cap(self._timeout_s)
            # 0 would make the socket one that does not wait at all.
            self._socket.settimeout(max(0.001, self.allowed_s))

    def _shut_down(self) -> None:
        with contextlib.suppress(OSError):
            # Below TLS, whose own way of closing is not safe while another thread reads.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._lifted is not None:
            self._waiting.__exit__()
            if self._lifted.was_cancelled:
                raise self._lifted.cut() from error
        if self._held is None:
            return
        self._waiting.__exit__()
        hold, deadline = self._held
        with contextlib.suppress(OSError):
            self._socket.settimeout(self._timeout_s)
        if deadline.in_force != deadline and not hold.was_cancelled:
            self.is_lifted = self._timeout_s is None or self.allowed_s < self._timeout_s
            return
        is_late = isinstance(error, TimeoutError) and deadline.ends_a_wait
        if hold.was_cancelled or is_late:
            raise hold.cut() from error


# Connections of urllib3 that were made under the hooks.
_connected: weakref.WeakSet[Any] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """In a forked process: use no connection again that its parent has made, or answers to both would get mixed."""
    for connection in _connected:
        connection.close()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def hold_urllib3() -> Replacements:
    """Replace the methods by which urllib3 connects and sends, and return what puts them back."""
    from urllib3 import HTTPHeaderDict  # noqa: PLC0415 - only where it is to be held
    from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - as above

    made = Replacements()

    def held_connect(previous: Any) -> Any:
        def connect(connection: Any) -> Any:
            _connected.add(connection)
            held = _hold_in_force()
            if held is None:
                return previous(connection)
            hold, deadline = held
            hold.refuse_if_over()
            timeout_s = connection.timeout
            given_s = timeout_s if isinstance(timeout_s, int | float) else None
            connection.timeout = max(0.001, deadline.cap(given_s))
            try:
                done = previous(connection)
            except Exception as error:
                if _is_late(hold):
                    raise hold.cut() from error
                raise
            finally:
                connection.timeout = timeout_s
            return done

        return connect

    def held_request(previous: Any) -> Any:
        def request(connection: Any, *arguments: Any, **options: Any) -> Any:
            held = _hold_in_force()
            if held is None:
                return previous(connection, *arguments, **options)
            held[0].refuse_if_over()
            if connection.sock is None:
                connection.connect()
            if not isinstance(connection.sock, _HeldSocket):
                connection.sock = _HeldSocket(connection.sock)
            wire = wire_in_force()
            if wire is not None:
                names = ("method", "url", "body", "headers")
                options = {**dict(zip(names, arguments, strict=False)), **options}
                # A copy: the caller's own headers, sent again, have another time left.
                headers = options["headers"] = HTTPHeaderDict(options.get("headers") or {})
                # What goes through a proxy goes to a host that is not known here.
                host = "" if connection.proxy is not None else connection.host
                wire.change(headers, host, connection.port, held[1])
                arguments = ()
            return previous(connection, *arguments, **options)

        return request

    made.replace(HTTPConnection, "connect", held_connect)
    made.replace(HTTPSConnection, "connect", held_connect)
    made.replace(HTTPConnection, "request", held_request)
    return made


def hold_aiohttp() -> Replacements:
    """Replace the method by which aiohttp sends every request, and return what puts it back."""
    import aiohttp  # noqa: PLC0415 - only where it is to be held
    from aiohttp.helpers import TimeoutHandle  # noqa: PLC0415 - as above

    made = Replacements()

    def held_request(previous: Any) -> Any:
        async def _request(session: Any, method: str, url: Any, **options: Any) -> Any:
            held = _hold_in_force()
            if held is None:
                return await previous(session, method, url, **options)
            hold, deadline = held
            hold.refuse_if_over()
            given = options.get("timeout")
            if isinstance(given, int | float):
                given = aiohttp.ClientTimeout(total=given)
            timeout = given if isinstance(given, aiohttp.ClientTimeout) else session.timeout
            options["timeout"] = aiohttp.ClientTimeout(
                total=CappedTimeout.of(timeout.total or None, deadline),
                connect=timeout.connect,
                sock_read=timeout.sock_read,
                sock_connect=timeout.sock_connect,
                # With a threshold aiohttp rounds longer timeouts up to whole seconds.
                ceil_threshold=math.inf,
            )
            try:
                return await previous(session, method, url, **options)
            except TimeoutError as error:
                if _is_late(hold):
                    raise hold.cut() from error
                raise

        return _request

    def held_expiry(previous: Any) -> Any:
        # Called when the time of a request is over.
        def expire(handle: Any) -> None:
            allowed = handle._timeout
            if not isinstance(allowed, CappedTimeout) or not allowed.is_lifted:
                previous(handle)
                return
            rest_s = allowed.rest(allowed)
            if rest_s is not None:
                handle._timeout = rest_s
                handle._loop.call_later(rest_s, expire, handle)

        return expire

    def held_send(previous: Any) -> Any:
        # Called for each redirect, with a request of its own.
        async def send(request: Any, connection: Any) -> Any:
            held, wire = _hold_in_force(), wire_in_force()
            if held is not None and wire is not None:
                wire.change(request.headers, request.url.raw_host or "", request.url.port, held[1])
            return await previous(request, connection)

        return send

    made.replace(aiohttp.ClientRequest, "send", held_send)
    made.replace(TimeoutHandle, "__call__", held_expiry)
    # Private, and the one method that all public ones call.
    made.replace(aiohttp.ClientSession, "_request", held_request)
    return made
