"""Taps on the seam: functions called before each request of a call is sent, and with its traffic at the end.

    with attach_taps(tap):
        ...                                     # every request inside a call, in any thread of this process

Recordings and caps are taps. A measurement alone needs none, and then no bytes are stored.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx
import httpx2

from docmind_lab.network.attempts import Attempt, LogicalCall


@dataclass
class Traffic:
    """The bytes of one attempt. headers: of the response, lower-case names. received: the raw body so far."""

    sent: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)


class Tap(Protocol):
    """Receives the traffic of attempts, in the thread or task that makes them: be quick and thread-safe."""

    def sending(self, call: LogicalCall) -> None:
        """Called before a request of the call is sent. Raises: an error that keeps it from being sent."""

    def ended(self, attempt: Attempt, traffic: Traffic) -> None:
        """Called when the attempt is over."""


_lock = threading.Lock()
_taps: tuple[Tap, ...] = ()


@contextlib.contextmanager
def attach_taps(*taps: Tap) -> Iterator[None]:
    """Call the taps for every request of a call in this process during a block."""
    # Of the process and not of a context: clients send from threads and event loops that were there before the block.
    global _taps
    with _lock:
        _taps = (*_taps, *taps)
    try:
        yield
    finally:
        with _lock:
            _taps = tuple(tap for tap in _taps if all(tap is not ours for ours in taps))


@dataclass
class Tapping:
    """The taps that were active when one request began; reports its end to them once."""

    taps: tuple[Tap, ...]
    traffic: Traffic
    _reported: bool = False

    @classmethod
    def of(cls, call: LogicalCall, request: Any) -> Tapping | None:
        """Return the taps of a request about to be sent; None without taps. Raises: what a tap raises."""
        taps = _taps
        if not taps:
            return None
        for tap in taps:
            tap.sending(call)
        return cls(taps, Traffic(content_of(request) or b""))

    def ended(self, attempt: Attempt) -> None:
        """Report the end of the attempt to the taps, unless they have it or it is still open."""
        if self._reported or attempt.outcome == "open":
            return
        self._reported = True
        for tap in self.taps:
            tap.ended(attempt, self.traffic)


def content_of(request: Any) -> bytes | None:
    """Return the body of a request of httpx or httpx2; None for a stream, which can be read once, by the server."""
    try:
        return bytes(request.content)
    except (httpx.RequestNotRead, httpx2.RequestNotRead):
        return None
