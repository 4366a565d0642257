"""A logical call, and its attempts: the requests that the client sends for it.

A middleware or tool opens a `LogicalCall` ("the second LLM call of the router after handoff 3") and puts it in force
with `call_scope`. Whatever HTTP client runs inside it, each request it sends becomes one `Attempt`, retries included,
timed by the seam and reported to the call's observer.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol
from urllib.parse import quote

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.levels import CutBy

CallKind = Literal["llm", "retrieval", "tool", "peer"]
AttemptOutcome = Literal["open", "ok", "timeout", "cancelled", "error", "refused"]

HEADER_PREFIX = "x-docmind-"


class AttemptObserver(Protocol):
    """Receives the start and the end of attempts, in the thread that makes them: be quick and thread-safe."""

    def attempt_started(self, attempt: Attempt) -> None:
        """Called when a client asks to send a request; it may still wait for a connection."""

    def attempt_ended(self, attempt: Attempt) -> None:
        """Called when the attempt is over; `attempt.outcome` says how it ended."""


@dataclass
class LogicalCall:
    """One call as the graph sees it, however often the client tries.

    step: logical position "handoff.fan-out.ordinal", the same for every alternative. cap_from_deadline: whether the
    timeout that the client was given derives from the run's deadline. read_timeout_s: bound of each single read, for
    clients that have no sub-second timeout of their own.
    """

    run_id: str
    call_id: str
    role: str
    step: str
    kind: CallKind
    seed: int
    observer: AttemptObserver
    parent_call_id: str = ""
    clock: Clock = WALL
    cap_from_deadline: bool = False
    read_timeout_s: float | None = None
    attempts: int = 0

    def headers(self, attempt_number: int) -> dict[str, str]:
        """Return the headers by which a simulated service identifies the call and joins its log to the client's.

        Headers are ASCII, and names of nodes need not be: `ServiceRequest.tag` reads them.
        """
        values = {
            "run-id": self.run_id,
            "call-id": self.call_id,
            "attempt": str(attempt_number),
            "role": self.role,
            "step": self.step,
            "seed": str(self.seed),
        }
        return {HEADER_PREFIX + name: quote(value) for name, value in values.items()}


@dataclass
class Attempt:
    """One request on the wire and the instants that the seam saw, on the call's clock; None if not reached.

    timeout_s: the longest the attempt may take (total cap) or wait for one read (the client's own); inf without.
    deadline: enforced on every operation of this attempt; None when nothing is. It moves where limits of the call are
    nearer than the run's deadline. cut_by: the limit that ended it; "deadline" for the run's; empty for none. own_s:
    the client's own timeouts by what they bound, "connect", "read", "write", "pool" or "total"; None for no limit.
    """

    call: LogicalCall
    number: int
    started_at: float
    timeout_s: float = math.inf
    deadline: Deadline | None = None
    acquired_at: float | None = None
    sent_at: float | None = None
    first_byte_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    longest_gap_s: float = math.nan
    ended_at: float | None = None
    outcome: AttemptOutcome = "open"
    status: int | None = None
    error_type: str = ""
    cut_by: CutBy = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    capped: bool = field(default=False)
    own_s: Mapping[str, float | None] = field(default_factory=dict)

    def note_acquired(self) -> None:
        """Record that the pool gave a connection or began to make one."""
        if self.acquired_at is None:
            self.acquired_at = self.call.clock.now()

    def note_sent(self) -> None:
        """Record that bytes of the request went to the network: from now on a server may know of it."""
        if self.sent_at is None:
            self.sent_at = self.call.clock.now()

    def note_first_byte(self) -> None:
        """Record that the first bytes of the response arrived."""
        if self.first_byte_at is None:
            self.first_byte_at = self.call.clock.now()

    def note_token(self, at: float) -> None:
        """Record that a token of the answer arrived at an instant."""
        if self.last_token_at is None:
            self.first_token_at = at
        else:
            # NaN is never the larger one, if it stands second.
            self.longest_gap_s = max(at - self.last_token_at, self.longest_gap_s)
        self.last_token_at = at

    def end(self, outcome: AttemptOutcome, error: BaseException | None = None) -> None:
        """End the attempt with this outcome; only the first call has an effect."""
        if self.outcome != "open":
            return
        self.ended_at = self.call.clock.now()
        self.outcome = outcome
        if error is not None:
            self.error_type = type(error).__name__
        self.call.observer.attempt_ended(self)


class _OnWire(NamedTuple):
    """What the running code sends. is_sending: whether a request is under way, from its start to its head."""

    call: LogicalCall | None = None
    attempt: Attempt | None = None
    is_sending: bool = False


_NOTHING: Final = _OnWire()
_on_wire: ContextVar[_OnWire] = ContextVar("docmind_lab_on_wire", default=_NOTHING)


def current_call() -> LogicalCall | None:
    """Return the logical call that the running code belongs to; None outside a call."""
    return _on_wire.get().call


def current_attempt() -> Attempt | None:
    """Return the attempt whose bytes the running code moves; None outside an attempt."""
    return _on_wire.get().attempt


def is_sending() -> bool:
    """Whether the running code is within the sending of a request: what it sends now is part of that."""
    return _on_wire.get().is_sending


class _wire_scope:  # noqa: N801 - the base class of those that are used as functions
    """Change what the running code sends. Entered for every read of a request, so it is no generator."""

    __slots__ = ("_token",)

    _token: Token[_OnWire]

    def __exit__(self, *exc_info: object) -> None:
        _on_wire.reset(self._token)


class call_scope(_wire_scope):  # noqa: N801 - used as the functions beside it are
    """Make requests sent during a block attempts of `call`; of none, if that is None."""

    __slots__ = ("_call",)

    def __init__(self, call: LogicalCall | None) -> None:
        self._call = call

    def __enter__(self) -> LogicalCall | None:
        self._token = _on_wire.set(_on_wire.get()._replace(call=self._call))
        return self._call

    def __exit__(self, *exc_info: object) -> None:
        # A call that nobody ends goes with its run, in whatever context that is.
        with contextlib.suppress(ValueError):
            super().__exit__()


class attempt_scope(_wire_scope):  # noqa: N801 - used as the functions beside it are
    """Count bytes moved during a block for `attempt`."""

    __slots__ = ("_attempt",)

    def __init__(self, attempt: Attempt | None) -> None:
        self._attempt = attempt

    def __enter__(self) -> None:
        around = _on_wire.get()
        self._token = _on_wire.set(_OnWire(around.call, self._attempt, around.is_sending))


class sending_scope(_wire_scope):  # noqa: N801 - used as the functions beside it are
    """Mark a block as the sending of a request."""

    __slots__ = ()

    def __enter__(self) -> None:
        around = _on_wire.get()
        self._token = _on_wire.set(_OnWire(around.call, around.attempt, True))
