"""A tap on the seam: told of each request of a call before it goes out, and of what came back once it is over.

    with tapped(tap):
        ...                                     # every request inside a call, in any thread of this process

Recordings and caps are taps. Whoever only measures needs none, and then nothing is kept.
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
    """What went over the wire for one attempt. headers: of the response, lower-case names. received: its body so far,
    as it came, compressed if its headers say so.
    """

    sent: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    received: list[bytes] = field(default_factory=list)


class Tap(Protocol):
    """Called in the thread or task that makes the request, so it must be quick and thread-safe."""

    def sending(self, call: LogicalCall) -> None:
        """A request of the call is about to be sent. Raises: what keeps it from being sent."""

    def ended(self, attempt: Attempt, traffic: Traffic) -> None:
        """The attempt is over."""


_lock = threading.Lock()
_taps: tuple[Tap, ...] = ()


@contextlib.contextmanager
def tapped(*taps: Tap) -> Iterator[None]:
    """Have the taps told of every request of a call in this process during a block."""
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
    """The taps there are as a request begins, and what they are told of it when it is over, once."""

    taps: tuple[Tap, ...]
    traffic: Traffic
    _told: bool = False

    @classmethod
    def of(cls, call: LogicalCall, request: Any) -> Tapping | None:
        """What taps a request that is about to be sent; None if nothing does. Raises: what a tap raises."""
        taps = _taps
        if not taps:
            return None
        for tap in taps:
            tap.sending(call)
        return cls(taps, Traffic(_content(request)))

    def ended(self, attempt: Attempt) -> None:
        """Tell them, if they have not been told."""
        if self._told or attempt.outcome == "open":
            return
        self._told = True
        for tap in self.taps:
            tap.ended(attempt, self.traffic)


def _content(request: Any) -> bytes:
    try:
        return bytes(request.content)
    except (httpx.RequestNotRead, httpx2.RequestNotRead):
        # A body that is a stream can be read once, by the server.
        return b""
