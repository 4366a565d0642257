"""One request under way: what it is allowed, what is noted of it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import httpcore
import httpcore2

from docmind_lab.deadlines import current_deadline, deadline_scope
from docmind_lab.network.attempts import HEADER_PREFIX, Attempt, AttemptOutcome, attempt_scope, current_call
from docmind_lab.settings import is_loopback

_TIMEOUT_NAMES = ("connect", "read", "write", "pool")
_SSE_END = b"data: [DONE]"

Admission = Callable[[str], None]  # raises for a URL that may not be reached


def admit_all(url: str) -> None:
    """Admit every URL: for clients whose endpoint was checked when they were built."""


@contextlib.contextmanager
def library_errors(core: ModuleType, web: ModuleType) -> Iterator[None]:
    """Turn an httpcore exception into the httpx exception of the same name."""
    try:
        yield
    except (
        core.TimeoutException,
        core.NetworkError,
        core.ProtocolError,
        core.UnsupportedProtocol,
        core.ProxyError,
    ) as error:
        for kind in type(error).__mro__:
            translated = getattr(web, kind.__name__, None)
            if isinstance(translated, type) and issubclass(translated, Exception):
                raise translated(str(error)) from error
        raise


def _smaller(timeout_s: float | None, bound_s: float) -> float:
    return bound_s if timeout_s is None else min(timeout_s, bound_s)


class Exchange:
    """One request under way: its attempt, and how the attempt ends."""

    def __init__(self, request: Any, admit: Admission) -> None:
        admit(str(request.url))
        self.timeouts: dict[str, float | None] = dict(request.extensions.get("timeout", {}))
        self.deadline = deadline = current_deadline()
        if deadline is not None:
            self.timeouts = {name: deadline.cap(self.timeouts.get(name)) for name in _TIMEOUT_NAMES}
        call = current_call()
        if call is not None and call.read_timeout_s is not None:
            self.timeouts = {name: _smaller(self.timeouts.get(name), call.read_timeout_s) for name in _TIMEOUT_NAMES}
        # A redirect copies the headers of the request before it, and may lead to another machine.
        for name in [name for name in request.headers if name.lower().startswith(HEADER_PREFIX)]:
            del request.headers[name]
        self.attempt: Attempt | None = None
        self.tail = b""
        if call is not None:
            call.attempts += 1
            read_s = self.timeouts.get("read")
            self.attempt = Attempt(
                call=call,
                number=call.attempts,
                started_at=call.clock.now(),
                timeout_s=math.inf if read_s is None else read_s,
                deadline=deadline,
                capped=deadline is not None or call.cap_from_deadline,
            )
            call.observer.attempt_started(self.attempt)
            if is_loopback(request.url.host):
                request.headers.update(call.headers(call.attempts))

    def core_request(self, core: ModuleType, request: Any, content: Any) -> Any:
        """The request as httpcore takes it, with the timeouts that are left of the deadline."""
        url = core.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        extensions = {**request.extensions, "timeout": self.timeouts}
        return core.Request(
            method=request.method.encode(),
            url=url,
            headers=request.headers.raw,
            content=content,
            extensions=extensions,
        )

    def answered(self, status: int) -> None:
        """Note the status line."""
        if self.attempt is not None:
            self.attempt.status = status

    def received(self, part: bytes) -> None:
        """Note bytes of the body."""
        self.tail = (self.tail + part)[-64:]

    def complete(self) -> None:
        """The body has been read to its end."""
        if self.attempt is not None:
            failed = self.attempt.status is not None and self.attempt.status >= 400
            if failed:
                self.attempt.error_type = f"HTTP {self.attempt.status}"
            self.attempt.end("error" if failed else "ok")

    def closed(self) -> None:
        """The client closed the response.

        Complete if it had read up to the end marker of an event stream, or if it had seen an error status: a client
        that tries again does not read what came with it.
        """
        if self.attempt is None:
            return
        if _SSE_END in self.tail or (self.attempt.status or 0) >= 400:
            self.complete()
        else:
            self.attempt.end("cancelled")

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """Run one operation of the attempt; an exception ends the attempt and goes on."""
        try:
            # A body may be read where another deadline, or none, is in force: the request's own goes with it.
            with attempt_scope(self.attempt), deadline_scope(self.deadline):
                yield
        except (httpcore.TimeoutException, httpcore2.TimeoutException) as error:
            self._end("timeout", error)
            raise
        except (asyncio.CancelledError, GeneratorExit) as error:
            self._end("cancelled", error)
            raise
        except (StopIteration, StopAsyncIteration):
            raise
        except BaseException as error:
            self._end("error", error)
            raise

    def _end(self, outcome: AttemptOutcome, error: BaseException) -> None:
        if self.attempt is not None:
            self.attempt.end(outcome, error)
