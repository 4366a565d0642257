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
from docmind_lab.core.clock import WALL
from docmind_lab.core.deadlines import (
    CappedTimeout,
    Deadline,
    current_deadline,
    current_policy,
    deadline_scope,
    in_force,
)
from docmind_lab.core.holds import current_hold
from docmind_lab.core.limits import LimitCut, Limits, LimitsOfCall
from docmind_lab.core.streamed_answers import StreamedAnswer
from docmind_lab.network.attempts import (
    HEADER_PREFIX,
    Attempt,
    AttemptOutcome,
    attempt_scope,
    current_attempt,
    current_call,
)
from docmind_lab.network.call_limits import LimitedCall, TokenFinder, asks_for_generation
from docmind_lab.network.deadline_headers import default_port, wire_in_force
from docmind_lab.network.taps import Tapping
from docmind_lab.network.wrapping_up import seconds_of_tool, tool_under_way

_TIMEOUT_NAMES = ("connect", "read", "write", "pool")
_SSE_END = b"data: [DONE]"

_TIMEOUTS = (httpcore.TimeoutException, httpcore2.TimeoutException, httpx.TimeoutException, httpx2.TimeoutException)

TIMERS_OF_CLIENT = "docmind_lab.timers"
"""Extension of a request: timeouts that its client enforces by timers of its own, by what they bound."""

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
    goes, if not where it says. read_timeout_s: bounds each single wait. limits: of calls; those of the policy in force
    when left out. What they cut ends with the library's own timeout, so that whoever tries again does.
    """

    def __init__(
        self,
        request: Any,
        admit: Admission,
        surfacing: Surfacing | None = None,
        *,
        url: Any = None,
        read_timeout_s: float | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.url = request.url if url is None else url
        if admit is not admit_all:
            admit(str(self.url))
        self._surfacing = surfacing
        own_timeouts: dict[str, float | None] = dict(request.extensions.get("timeout", {}))
        self.timeouts = own_timeouts
        self.deadline = deadline = current_deadline()
        self._hold = current_hold()
        if deadline is not None:
            # Most clients wait equally long for everything: one is made for all that are equal.
            capped = {own_s: CappedTimeout.of(own_s, deadline) for own_s in {*map(own_timeouts.get, _TIMEOUT_NAMES)}}
            self.timeouts = {name: capped[own_timeouts.get(name)] for name in _TIMEOUT_NAMES}
        call = current_call()
        self._tokens = TokenFinder()
        self._answer: StreamedAnswer | None = None
        # Whose it is, named here: the response may be read in another context.
        self._answers_work: str | None = None
        if self._hold is not None and self._hold.keeps_answers and asks_for_generation(self.url.path):
            self._answers_work = self._hold.name_work()
        self._limited: LimitedCall | None = None
        self._tool = tool_under_way()
        self.attempt: Attempt | None = None
        of_call = self._limits_of_call(limits or current_policy().policies.limits)
        if of_call != LimitsOfCall():
            clock = call.clock if call is not None else WALL if deadline is None else deadline.clock
            self._limited = LimitedCall(of_call, deadline, clock)
            # The wait for a connection is bounded by this number alone, every other one where it happens.
            bound = self._limited.in_force
            assert bound is not None, "a call begins under one of its limits"
            self.timeouts = {**self.timeouts, "pool": CappedTimeout.of(self.timeouts.get("pool"), bound)}
        for bound_s in (read_timeout_s, None if call is None else call.read_timeout_s):
            if bound_s is not None:
                own = ((name, self.timeouts.get(name)) for name in _TIMEOUT_NAMES)
                self.timeouts = {name: bound_s if own_s is None else min(own_s, bound_s) for name, own_s in own}
        self._request = request
        self._tags: tuple[tuple[bytes, bytes], ...] = ()
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
                own_s={**own_timeouts, **request.extensions.get(TIMERS_OF_CLIENT, {})},
            )
            call.observer.attempt_started(self.attempt)
            if is_loopback(self.url.host):
                tags = call.headers(call.attempts)
                self._tags = tuple((name.encode("ascii"), value.encode("ascii")) for name, value in tags.items())

    def _limits_of_call(self, limits: Limits | None) -> LimitsOfCall:
        if limits is None and self._tool is None:
            return LimitsOfCall()
        call = current_call()
        is_model = asks_for_generation(self.url.path) if call is None else call.kind == "llm"
        of_call = LimitsOfCall()
        if limits is not None:
            role = call.role if call is not None else self._role if limits.by_role else ""
            of_call = limits.of_call(role, is_model=is_model)
        return of_call._replace(wrap_up_s=seconds_of_tool(is_model=is_model))

    @property
    def _role(self) -> str:
        if self.attempt is not None:
            return self.attempt.call.role
        return "" if self._hold is None else self._hold.name_work()

    @property
    def bound(self) -> Deadline | None:
        """What bounds the request now: the deadline, or the nearer limit of its call; None for nothing."""
        return self.deadline if self._limited is None else self._limited.in_force

    @property
    def limit_bound(self) -> Deadline | None:
        """What bounds the request now if its call has limits; None for one that has none, or none any more."""
        return None if self._limited is None else self._limited.in_force

    @property
    def limit_over(self) -> bool:
        """Whether a limit of the call, and not the deadline of the run, may have ended a wait now."""
        return self._limited is not None and self._limited.limit_over is not None and not self._is_cut()

    @property
    def watches_body(self) -> bool:
        """Whether somebody wants to know of the response and its body: who records it, a limit, or who keeps it."""
        return self.attempt is not None or self._limited is not None or self._answers_work is not None

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
        """Record the status line of the response and its headers."""
        raw = {name.lower(): value for name, value in headers}
        self._tokens = TokenFinder(raw)
        if self._answers_work is not None and self._hold is not None and status < 400 and StreamedAnswer.is_one(raw):
            self._answer = StreamedAnswer(self._answers_work, raw)
            self._hold.note("answers", self._answer)
        if self.attempt is not None:
            self.attempt.status = status
        if self._tapping is not None:
            self._tapping.traffic.headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in raw.items()
            }

    def note_body(self, part: bytes) -> None:
        """Record bytes of the response body, and let the wait for the next token begin if they hold one."""
        if self._answer is not None:
            self._answer.feed(part)
        clock = self._limited.clock if self._limited is not None else self.attempt and self.attempt.call.clock
        if clock and self._tokens.feed(part):
            now = clock.now()
            if self._limited is not None:
                self._limited.note_token(now)
            if self.attempt is not None:
                self.attempt.note_token(now)
        if self.attempt is not None:
            self.tail = (self.tail + part)[-64:]
        if self._tapping is not None:
            self._tapping.traffic.received.append(part)

    def complete(self) -> None:
        """End the attempt: the body has been read to its end."""
        self._end_answer(was_cut=False)
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
        self._end_answer(was_cut=self._answer is not None and not self._answer.is_whole)
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
        bound = self.bound
        if self._limited is not None and self.attempt is not None:
            self.attempt.deadline = bound
        self._deadline_scope = None if bound is in_force().deadline else deadline_scope(bound)
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

    def note_failure(self, error: BaseException, *, may_be_left: bool = False) -> None:
        """End the attempt with an operation's error. Raises: `surfacing`'s error if the deadline cut it.

        may_be_left: whether it may be the client that closed the connection, as one does whose task is cancelled.
        """
        is_cancelled = self._is_cancelled() or isinstance(error, asyncio.CancelledError | GeneratorExit)
        self._end_answer(was_cut=may_be_left or is_cancelled or self._is_cut())
        if isinstance(error, _TIMEOUTS):
            is_cut = self._is_cut()
            self._note_cut(is_cut)
            self._end("timeout", error)
            if self._surfacing is not None and is_cut:
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

    def _end_answer(self, *, was_cut: bool) -> None:
        """Keep a streamed answer only if it was cut."""
        answer, self._answer = self._answer, None
        if answer is not None and self._hold is not None and not was_cut:
            self._hold.drop_answer(answer)

    def _is_cut(self) -> bool:
        deadline = None if self.deadline is None else self.deadline.in_force
        return deadline is not None and deadline.ends_a_wait

    def _note_cut(self, is_cut: bool) -> None:
        """Note which limit has ended a wait, if one has. is_cut: whether the deadline of the run has."""
        limit = None if is_cut or self._limited is None else self._limited.limit_over
        if self.attempt is not None and self.attempt.outcome == "open":
            self.attempt.cut_by = "deadline" if is_cut else limit or ""
        if limit == "wrap_up":
            if self._tool is not None:
                self._tool.note_cut()
        elif limit is not None and self._limited is not None and self._hold is not None:
            after_s = self._limited.clock.now() - self._limited.started_at
            self._hold.note("limit_cuts", LimitCut(limit, self._role, self.url.host, after_s))

    def _is_cancelled(self) -> bool:
        return self._hold is not None and self._hold.was_cancelled

    def _end(self, outcome: AttemptOutcome, error: BaseException | None = None) -> None:
        if self.attempt is None:
            return
        self.attempt.end(outcome, error)
        if self._tapping is not None:
            self._tapping.ended(self.attempt)
