"""A blocking socket whose waits end with the hold in force, or with a limit of the call that waits on it."""

from __future__ import annotations

import contextlib
import functools
import io
from typing import Any

from docmind_lab.core.deadlines import CappedTimeout
from docmind_lab.core.holds import blocking_on, current_hold
from docmind_lab.network.clients.in_memory import MemorySocket
from docmind_lab.network.clients.watching import ResponseWatcher, hold_in_force, note_failures
from docmind_lab.network.exchange import Exchange
from docmind_lab.network.streams import end_waits

# 0 would make a socket one that does not wait at all.
LEAST_S = 0.001


class HeldSocket:
    """A blocking socket whose waits are bounded by the hold in force; everything else is the socket's own.

    watcher: of the response that comes next; None if nobody watches it.
    """

    watcher: ResponseWatcher | None = None

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sendall(self, data: Any, *arguments: Any) -> Any:
        """Send all of the data, as the socket does."""
        with _bounded(self._inner, None if self.watcher is None else self.watcher.exchange):
            return self._inner.sendall(data, *arguments)

    def makefile(self, mode: str = "r", buffering: int | None = None, **options: Any) -> Any:
        """Return a file of the socket. One that is read takes the watcher with it."""
        if mode != "rb":
            return self._inner.makefile(mode, buffering, **options)
        watcher, self.watcher = self.watcher, None
        return io.BufferedReader(_HeldFile(self._inner, watcher))


class _HeldFile(io.RawIOBase):
    """The readable end of a held socket. watcher: of the response that is read; None if nobody watches it."""

    def __init__(self, inner: Any, watcher: ResponseWatcher | None) -> None:
        self._socket, self._watcher = inner, watcher
        self._raw: io.RawIOBase = inner.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        with note_failures(None if self._watcher is None else self._watcher.exchange):
            count = self._read(buffer)
        if self._watcher is not None:
            self._watcher.note_data(bytes(buffer[: count or 0]))
        return count

    def _read(self, buffer: Any) -> int | None:
        exchange = None if self._watcher is None else self._watcher.exchange
        bounded, own_s = _bounded(self._socket, exchange), self._socket.gettimeout()
        try:
            with bounded:
                return self._raw.readinto(buffer)
        except TimeoutError:
            if not bounded.is_lifted:
                raise
        # A file of a socket reads no more once it has timed out; another one of the same socket does.
        self._raw.close()
        self._raw = self._socket.makefile("rb", buffering=0)
        self._socket.settimeout(None if own_s is None else own_s - bounded.allowed_s)
        try:
            return self._read(buffer)
        finally:
            self._socket.settimeout(own_s)

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.note_client_left()
        # The socket counts its files, and is closed with the last one.
        self._raw.close()
        super().close()


class _bounded:  # noqa: N801 - used as a function
    """Bound one wait on a socket by the hold in force, and by limits of the call that it waits for.

    exchange: of the request; None where nobody knows it. Raises: RunCut if the deadline or the caller ends the wait.
    """

    _waiting: blocking_on | None = None

    def __init__(self, inner: Any, exchange: Exchange | None = None) -> None:
        self._socket, self._exchange, self.is_lifted = inner, exchange, False

    def __enter__(self) -> None:
        held, hold = hold_in_force(), current_hold()
        # The hold of a task may be cancelled after its deadline has been lifted.
        if hold is None or (held is None and not hold.only_tells):
            return
        self._hold, self._deadline = hold, None if held is None else held[1]
        self._waiting = blocking_on(functools.partial(end_waits, self._socket))
        self._waiting.__enter__()
        self._timeout_s = self.allowed_s = self._socket.gettimeout()
        limit_bound = None if self._exchange is None else self._exchange.limit_bound
        self._bound = limit_bound or (self._deadline if hold.policy.cap == "total" else None)
        if self._bound is not None:
            if isinstance(self._socket, MemorySocket):
                # It takes the deadline from its timeout.
                self.allowed_s = CappedTimeout.of(self._timeout_s, self._bound)
            else:
                self.allowed_s = self._bound.cap(self._timeout_s)
            self._socket.settimeout(max(LEAST_S, self.allowed_s))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._waiting is None:
            return
        self._waiting.__exit__()
        with contextlib.suppress(OSError):
            self._socket.settimeout(self._timeout_s)
        deadline = self._deadline
        if self._hold.was_cancelled:
            raise self._hold.cut() from error
        if deadline is None:
            return
        if self._bound is not None and self._bound.in_force != self._bound:
            self.is_lifted = self._timeout_s is None or self.allowed_s < self._timeout_s
        elif isinstance(error, TimeoutError) and deadline.ends_a_wait:
            raise self._hold.cut() from error
