"""Deadlines: the instant at which a run's time is over, and how it reaches each call.

    deadline = Deadline.after(2.0)               # two seconds from now
    state["deadline_ts"] = deadline.at_s         # what travels through a graph
    with deadline_scope(deadline.child(0.3)):    # what the network seam enforces around one call
        ...

A monotonic instant never survives its process: a resumed or forked checkpoint gets a fresh deadline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.duration_headers import DEADLINE_HEADER, GRPC_TIMEOUT, read_remaining_s
from docmind_lab.core.errors import BudgetRefused, ConfigurationError, DeadlineExceeded
from docmind_lab.core.numbers import require_allowance, require_count, require_number, require_seconds
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.time_policies import TimePolicies

DEADLINE_KEY = "deadline_ts"

# 23 days. A socket waits for 2**31 ms at most, a lock for 2**63 ns, and both raise OverflowError for more; what
# another process says it will wait for must not fail a request.
_LONGEST_WAIT_S: Final = 2_000_000.0

_TICK_S: Final = 0.005

CapKind = Literal["total", "per_read"]


@dataclass(frozen=True)
class Deadline(ShownAsCode):
    """The instant at which a run's time is over.

    Args:
        at_s: The instant, in seconds on `clock`.
        limit_s: The seconds it was given when it was made. It stays the same when the deadline is handed on, so that
            errors count from the start of the run wherever they are raised.
        clock: The clock of the instant; real time by default.
        in_place: Returns the deadline that applies in place of this one, which is itself while it is in force.
    """

    at_s: float
    limit_s: float
    # What is left is not shown: to look at an object must not ask a clock, which may be of another time.
    clock: Clock = field(default=WALL, repr=False)
    in_place: Callable[[], Deadline | None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not math.isfinite(self.at_s):
            raise ConfigurationError(f"a deadline needs a finite instant, not {self.at_s!r}; leave it out for none")

    @classmethod
    def after(cls, decision_timeout_s: float, clock: Clock = WALL) -> Deadline:
        """Return the deadline this many seconds from now.

        Args:
            decision_timeout_s: Seconds from now.
            clock: The clock of the instant.

        Raises:
            ConfigurationError: The seconds are not finite and above 0.
        """
        limit_s = require_seconds("decision timeout", decision_timeout_s)
        return cls(at_s=clock.now() + limit_s, limit_s=limit_s, clock=clock)

    @classmethod
    def from_headers(
        cls,
        headers: Mapping[str, str],
        *,
        at_most_s: float,
        transit_s: float = 0.0,
        names: tuple[str, ...] = (DEADLINE_HEADER, GRPC_TIMEOUT),
        clock: Clock = WALL,
    ) -> Deadline:
        """Return the deadline of a request that came in: the smaller of what its headers say and what is allowed.

        A header that cannot be read counts as absent. If nothing is left, the deadline has passed already.

        Args:
            headers: The headers of the request, as a dict or as an object of Starlette, httpx, aiohttp or requests.
            at_most_s: Seconds that the server allows.
            transit_s: Seconds taken off what the headers say, for the way here and back.
            names: The headers to read; the smallest counts.
            clock: The clock of this process, on which the duration begins now.

        Raises:
            ConfigurationError: `at_most_s` is not finite and above 0, or `transit_s` not finite and 0 or more.
        """
        require_allowance("transit_s", transit_s)
        limit_s = require_seconds("at_most_s", at_most_s)
        for name in names:
            came_s = read_remaining_s(headers, name)
            if came_s is not None:
                limit_s = max(0.0, min(limit_s, came_s - transit_s))
        return cls(at_s=clock.now() + limit_s, limit_s=limit_s, clock=clock)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], clock: Clock = WALL) -> Deadline | None:
        """Return the earlier of the deadline in a graph's state and the one in force; None if there is neither.

        State carries an instant only. Within a run its limit counts from the start of the run; elsewhere from now.

        Args:
            state: A state of a graph.
            clock: The clock of its instant.

        Raises:
            ConfigurationError: The state holds anything but a finite number.
        """
        instant, outer = state.get(DEADLINE_KEY), current_deadline()
        if instant is None:
            return outer
        at_s = require_number(DEADLINE_KEY, instant, "a finite instant", remedy="leave it out for none")
        if outer is not None and outer.at_s <= at_s:
            return outer
        run = _in_force.get().run
        if run is None:
            return cls(at_s=at_s, limit_s=max(0.0, at_s - clock.now()), clock=clock)
        return run if at_s == run.at_s else cls(at_s, max(0.0, run.limit_s - (run.at_s - at_s)), clock)

    def remaining(self) -> float:
        """Return the seconds left until the deadline, 23 days at most; negative once it has passed."""
        return min(self.at_s - self.clock.now(), _LONGEST_WAIT_S)

    @property
    def in_force(self) -> Deadline | None:
        """The deadline itself; once what it was for has ended well, the one around it, or None."""
        return self if self.in_place is None else self.in_place()

    @property
    def ends_a_wait(self) -> bool:
        """Whether a wait that it bounds may have ended by it: at the deadline, or a tick of a system's clock before."""
        return self.remaining() <= _TICK_S

    def passed(self) -> bool:
        """Whether no time is left. The instant of the deadline itself counts as passed, for every alternative."""
        return self.remaining() <= 0

    def cap(self, timeout_s: float | None) -> float:
        """Return the smaller of a timeout and the remaining time, in seconds; never negative.

        Args:
            timeout_s: Seconds; None for no timeout.
        """
        remaining_s = max(0.0, self.remaining())
        return remaining_s if timeout_s is None else min(timeout_s, remaining_s)

    def child(self, reserve_s: float = 0.0) -> Deadline:
        """Return a deadline that ends `reserve_s` seconds earlier, which keeps time for later work.

        Args:
            reserve_s: Seconds.
        """
        require_allowance("reserve_s", reserve_s)
        return Deadline(at_s=self.at_s - reserve_s, limit_s=self.limit_s - reserve_s, clock=self.clock)

    def exceeded(self, role: str, source: str) -> DeadlineExceeded:
        """Return the error for a call of a role that the deadline cut.

        Args:
            role: Who made the call.
            source: What enforced the deadline, such as "network".
        """
        elapsed_s = self.limit_s - self.remaining()
        message = f"{role}: the deadline cut a call at {source}, {elapsed_s:.3f} s into a limit of {self.limit_s:.3f} s"
        return DeadlineExceeded(message, role=role, limit_s=self.limit_s, elapsed_s=elapsed_s, source=source)

    def refused(self, role: str, source: str) -> BudgetRefused:
        """Return the error for a call that was not started because no time was left.

        Args:
            role: Who would have made the call.
            source: What enforced the deadline, such as "network".
        """
        remaining_s = self.remaining()
        message = f"{role}: a call was refused at {source} with {remaining_s:.3f} s left of {self.limit_s:.3f} s"
        return BudgetRefused(
            message, role=role, limit_s=self.limit_s, elapsed_s=self.limit_s - remaining_s, source=source
        )


class CappedTimeout(float):
    """A client's timeout, capped by a deadline when its request began, in seconds.

    own_s: the client's own; None for none. is_taken: whether what sends the request ends it by the deadline itself.
    """

    own_s: float | None
    deadline: Deadline
    is_taken = False

    @classmethod
    def of(cls, own_s: float | None, deadline: Deadline) -> CappedTimeout:
        """Return what a client may wait: the smaller of its own timeout and what is left."""
        timeout = cls(deadline.cap(own_s))
        timeout.own_s, timeout.deadline = own_s, deadline
        return timeout

    @property
    def is_lifted(self) -> bool:
        """Whether the deadline is in force no more, so that the client's own timeout applies again."""
        return self.deadline.in_force != self.deadline

    def rest(self, waited_s: float) -> float | None:
        """Return what a client that has waited may still wait once the deadline is lifted; None for no limit."""
        rest_s, deadline = None if self.own_s is None else max(0.0, self.own_s - waited_s), self.deadline.in_force
        return rest_s if deadline is None else CappedTimeout.of(rest_s, deadline)


@dataclass(frozen=True)
class PropagationPolicy:
    """How a propagated deadline is applied to each call.

    cap: "total" bounds everything a call does, trickled bytes included; "per_read" hands the client a timeout and
        leaves it at that, which a client applies to each read anew (kept so that the difference can be shown).
    floor_s: with this much left or less, a call is refused before it is sent.
    retries: attempts after the first, within the budget only.
    policies: how the time of each model call is spent: hedges, timeouts, retries, refusals. None by default.
    """

    cap: CapKind = "total"
    floor_s: float = 0.005
    retries: int = 1
    policies: TimePolicies = field(default_factory=TimePolicies)

    def __post_init__(self) -> None:
        if self.cap not in ("total", "per_read"):
            raise ConfigurationError(f"cap must be 'total' or 'per_read', not {self.cap!r}")
        require_allowance("floor_s", self.floor_s)
        require_count("retries", self.retries, 0)


DEFAULT_POLICY: Final = PropagationPolicy()
"""The policy where none is chosen."""


class InForce(NamedTuple):
    """What is in force for the running code: one object, in one context variable.

    Args:
        deadline: The deadline that requests are bounded by; None for none.
        policy: How it is applied to each call.
        run: The deadline of the whole run, where there is one; see `policy_scope`.
        hold: What holds requests, see `core.holds`; None outside every hold.
        meter: What counts tokens, calls and cost, see `core.budgets`; None outside a metered run.
        tool: The tool whose requests end when the run is to be wrapped up, see `network.wrapping_up`; None outside one.
    """

    deadline: Deadline | None = None
    policy: PropagationPolicy = DEFAULT_POLICY
    run: Deadline | None = None
    # These are defined in modules that import this one, which give them back under their own types.
    hold: Any = None
    meter: Any = None
    tool: Any = None


_NOTHING: Final = InForce()
_in_force: ContextVar[InForce] = ContextVar("docmind_lab_in_force", default=_NOTHING)


def in_force() -> InForce:
    """Return what is in force for the running code."""
    return _in_force.get()


class in_force_scope:  # noqa: N801 - used as the functions beside it are
    """Put something in force during a block, by the names of `InForce`.

    Entered for every read of an observed request, so it is no generator.
    """

    __slots__ = ("_changes", "_token")

    def __init__(self, **changes: Any) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        self._token = _in_force.set(_in_force.get()._replace(**self._changes))

    def __exit__(self, *exc_info: object) -> None:
        _in_force.reset(self._token)


def current_deadline() -> Deadline | None:
    """Return the deadline in force around the running code; None if there is none."""
    deadline = _in_force.get().deadline
    return None if deadline is None else deadline.in_force


def current_policy() -> PropagationPolicy:
    """Return the policy by which the running code applies a propagated deadline."""
    return _in_force.get().policy


class deadline_scope(in_force_scope):  # noqa: N801 - used as the functions beside it are
    """Put a deadline in force during a block; inside another one, the earlier of the two stays in force.

    Unless it `inherits`, a deadline around the block does not apply to it.
    """

    __slots__ = ("_deadline", "_inherits")

    def __init__(self, deadline: Deadline | None, *, inherits: bool = True) -> None:
        self._deadline, self._inherits = deadline, inherits

    def __enter__(self) -> Deadline | None:  # type: ignore[override]
        outer = current_deadline() if self._inherits else None
        effective = nearer(self._deadline, outer)
        self._token = _in_force.set(_in_force.get()._replace(deadline=effective))
        return effective


def nearer(inner: Deadline | None, outer: Deadline | None) -> Deadline | None:
    """Return the earlier of two nested deadlines, the inner one if both have one instant; None if there is neither."""
    # The inner one knows what takes its place once the outer block is released.
    return outer if inner is None or (outer is not None and outer.at_s < inner.at_s) else inner


def policy_scope(policy: PropagationPolicy, run: Deadline | None = None) -> in_force_scope:
    """Apply propagated deadlines by a policy during a block.

    run: the deadline of the whole run, whose start and limit a deadline read from a state has.
    """
    return in_force_scope(policy=policy, run=run)
