"""Who observes the requests of the calling code, and what they are held to: what each library's adapter asks.

A run of the lab has an observer, which says where a request goes and records it. A hold says until when the request
may go on; production has only a hold.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import h11
import httpx

from docmind_lab.core.deadlines import Deadline, current_policy, deadline_scope
from docmind_lab.core.errors import RunCut
from docmind_lab.core.holds import Hold, current_hold
from docmind_lab.core.limits import Limits
from docmind_lab.network.attempts import Attempt, LogicalCall, call_scope
from docmind_lab.network.exchange import Exchange, admit_all
from docmind_lab.network.wrapping_up import tool_under_way


@dataclass(frozen=True)
class Passage:
    """The call, the limits and the changes with which one request is sent.

    Args:
        call: The call that it becomes an attempt of; None for a request that is only held.
        to: The URL that takes the place of its own; None for its own.
        deadline: Bounds everything that the request does, besides the deadline in force.
        read_timeout_s: Bounds each single wait, in seconds.
        headers: Added to it.
        limits: Of calls, where those of the policy in force may be others; None for those.
        is_held: Whether a cut of the run is a cut of the request; without, its answer is watched and nothing else.
    """

    call: LogicalCall | None
    to: str | None = None
    deadline: Deadline | None = None
    read_timeout_s: float | None = None
    headers: dict[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    is_held: bool = True


class Observer(Protocol):
    """What observes the requests of the calling code.

    records: whether requests become attempts of calls; without, they are held and nothing else.
    """

    @property
    def records(self) -> bool:
        """Whether `passage` wants the address of a request and whether it is a retry."""
        ...

    @property
    def is_simulated(self) -> bool:
        """Whether what answers is simulated, so that httpx sends the requests of other libraries."""
        ...

    def passage(self, method: str, url: str, is_retry: bool) -> Passage:
        """Return how a request of the calling code is sent; raise for one that must not be sent."""
        ...

    def cut(self, attempt: Attempt | None, deadline: Deadline | None) -> BaseException:
        """Return the error that the client gets when the deadline, or the caller, has cut a request."""
        ...

    def as_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that is handed to a thread, so that it counts as work of the run."""
        ...


Finder = Callable[[str], Observer | None]
"""Host, or empty for a request of httpx → the observer of the calling code; None for code that is not observed."""

_lock = threading.Lock()
_finders: tuple[Finder, ...] = ()


def add_finder(finder: Finder) -> Callable[[], None]:
    """Have all adapters ask `finder` who observes the calling code; return a function that takes it out again."""
    global _finders

    def remove() -> None:
        global _finders
        with _lock:
            remaining = list(_finders)
            remaining.remove(finder)  # once: runs of two clocks may have added it
            _finders = tuple(remaining)

    with _lock:
        _finders = (*_finders, finder)
    return remove


def observer_of_run(host: str = "") -> Observer | None:
    """Return the observer of the run that the calling code belongs to; None outside every run of the lab."""
    # The latest first: of two that would answer it is the nearer.
    for finder in reversed(_finders):
        observer = finder(host)
        if observer is not None:
            return observer
    return None


# ---- what holds a request


def hold_in_force() -> tuple[Hold, Deadline] | None:
    """Return the hold on the calling code and its deadline; None without one.

    Raises: RunCut in a task whose hold was cancelled after its deadline was lifted.
    """
    hold = current_hold()
    if hold is None:
        return None
    deadline = hold.in_force
    if hold.only_tells and hold.was_cancelled:
        hold.refuse_if_over()
    return None if deadline is None else (hold, deadline)


def is_late(hold: Hold) -> bool:
    """Whether the deadline in force may have ended a wait."""
    deadline = hold.in_force
    return deadline is not None and deadline.ends_a_wait


_HELD_IN_TOTAL, _WATCHED = Passage(None), Passage(None, is_held=False)


class HeldCode:
    """The calling code of a held block outside every run of the lab: an `Observer` that records nothing.

    is_held: False for a block without a deadline, whose answers are kept for the case that it is cut.
    """

    __slots__ = ("_hold", "_is_held")
    records = is_simulated = False

    def __init__(self, hold: Hold, *, is_held: bool = True) -> None:
        self._hold, self._is_held = hold, is_held

    def passage(self, method: str, url: str, is_retry: bool) -> Passage:
        """Return the limits of a request. Raises: RunCut if the time is over."""
        hold = self._hold
        if not self._is_held:
            return _WATCHED
        hold.refuse_if_over()
        if hold.policy.cap == "total":
            # The deadline itself is in force here.
            return _HELD_IN_TOTAL
        deadline = hold.in_force
        return Passage(None, read_timeout_s=None if deadline is None else deadline.cap(None))

    def cut(self, attempt: Attempt | None, deadline: Deadline | None) -> RunCut:
        """Return the error to raise in the client of a request that was cut."""
        return self._hold.cut()

    def as_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that is handed to a thread: it counts as work, and does not begin when the time is over."""
        return self._hold.as_thread_work(function)


def held_code() -> HeldCode | None:
    """Return what holds or watches the requests of the calling code; None for neither. Raises: as `hold_in_force`."""
    held, hold = hold_in_force(), current_hold()
    if held is not None:
        return HeldCode(held[0])
    return HeldCode(hold, is_held=False) if hold is not None and hold.keeps_answers else None


class _Work:
    """A function that counts as work of the code that handed it to a thread."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def as_work(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that an event loop hands to a thread, once: it counts as work of the calling code."""
    if isinstance(function, _Work):
        return function
    hold, observer = current_hold(), observer_of_run()
    if observer is None:
        return function if hold is None else _Work(hold.as_thread_work(function))
    return _Work(observer.as_work(function))


# ---- a request that its library sends itself


def exchange_of(observer: Observer, method: str, url: str, body: bytes = b"") -> Exchange:
    """Return the exchange of a request that its library sends itself. Raises: what the observer raises."""
    passage = observer.passage(method, url, False)
    request = httpx.Request(method, url, content=body)
    with call_scope(passage.call), deadline_scope(passage.deadline):
        read_s, limits = passage.read_timeout_s, passage.limits
        surfacing = observer.cut if passage.is_held else None
        return Exchange(request, admit_all, surfacing, read_timeout_s=read_s, limits=limits)


def limited_exchange(method: str, url: str) -> Exchange | None:
    """Return the exchange of a held request outside every run of the lab; None if nobody watches its response.

    It is watched for limits of its call, for a tool that must end before its run, and for a hold that keeps answers.
    """
    hold = current_hold()
    keeps_answers = hold is not None and hold.keeps_answers
    if current_policy().policies.limits is None and tool_under_way() is None and not keeps_answers:
        return None
    held = held_code()
    exchange = None if held is None else exchange_of(held, method, url)
    return exchange if exchange is not None and exchange.watches_body else None


@contextlib.contextmanager
def note_failures(exchange: Exchange | None) -> Iterator[None]:
    """Note in an exchange, if there is one, what another library raises, as httpx's error of the same meaning."""
    try:
        yield
    except BaseException as error:
        if exchange is not None:
            is_timeout = isinstance(error, TimeoutError | RunCut)
            exchange.note_failure(httpx.ReadTimeout(str(error)) if is_timeout else error)
        raise


class ResponseWatcher:
    """Parses the response to a request that its library sends itself, and tells the exchange of it.

    Args:
        exchange: Of the request.
        method: Of the request.
    """

    def __init__(self, exchange: Exchange, method: str) -> None:
        self.exchange = exchange
        self.is_over = False
        self._h11 = h11.Connection(h11.CLIENT)
        self._h11.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        self._h11.send(h11.EndOfMessage())

    def note_data(self, data: bytes) -> None:
        """Note bytes of the response; none at all mean that the server has closed the connection."""
        if self.is_over:
            return
        try:
            self._h11.receive_data(data)
            while (event := self._h11.next_event()) not in (h11.NEED_DATA, h11.PAUSED) and not self.is_over:
                if isinstance(event, h11.Response):
                    if self.exchange.attempt is not None:
                        self.exchange.attempt.note_first_byte()
                    self.exchange.note_response(event.status_code, event.headers)
                elif isinstance(event, h11.Data):
                    self.exchange.note_body(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._end(self.exchange.complete)
        except h11.RemoteProtocolError as error:
            self._end(functools.partial(self.exchange.note_failure, error, may_be_left=not data))

    def note_connection_lost(self, error: BaseException | None) -> None:
        """Note that the connection is closed, by an error or without one, as it is at the deadline."""
        if self.is_over:
            return
        deadline = None if self.exchange.deadline is None else self.exchange.deadline.in_force
        if deadline is not None and deadline.ends_a_wait:
            error = httpx.ReadTimeout("the deadline is over")
        if error is None:
            self.note_data(b"")
            self.note_client_left()
        else:
            self._end(functools.partial(self.exchange.note_failure, error))

    def note_client_left(self) -> None:
        """Note that the client reads no further."""
        if not self.is_over:
            self._end(self.exchange.note_closed)

    def _end(self, note: Callable[[], None]) -> None:
        self.is_over = True
        # What is noted of a cut is raised where the response is awaited.
        with contextlib.suppress(RunCut):
            note()
