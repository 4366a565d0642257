"""Budgets for a run's tokens and calls, and the meter that counts what the run has spent.

    budget = Budget(time_s=20, tokens=6000, calls=12)
    with metering(Meter(budget)):           # around the run; threads and tasks started in it see the same meter
        ...

A budget holds for the run as a whole. It is checked before each request to the model, which is refused when nothing is
left, and charged when a response reports its usage. What a request will use is not known before it is sent: a request
under way may exceed the limit, and several at once by no more than they use.
"""

from __future__ import annotations

import math
import threading
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from docmind_lab.core.deadlines import in_force, in_force_scope, require_seconds
from docmind_lab.core.errors import CallsSpent, ConfigurationError, SpendingRefused, TokensSpent
from docmind_lab.core.shown import ShownAsCode

Kind = Literal["tokens", "calls"]
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

NO_BUDGETS: Final = "none"
"""The name in the tables of a run without a budget of tokens or calls."""

# A model refuses a request for more tokens than it can write; today's chat models can write this many or more. While
# more is left, a request says nothing, and a longer reply passes the limit by itself.
_LARGEST_CAP = 4096


@dataclass(frozen=True)
class Budget(ShownAsCode):
    """What one run may use of time, tokens and calls; None sets no limit.

    Args:
        time_s: The decision timeout, seconds.
        tokens: Tokens read and written, as responses count them.
        calls: Requests to the model, with each retry; searches do not count.

    Raises:
        ConfigurationError: A budget cannot be used; the message names it.
    """

    time_s: float | None = None
    tokens: int | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        if self.time_s is not None:
            require_seconds("budget.time_s", self.time_s)
        for name, example in (("tokens", 6000), ("calls", 12)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigurationError(
                    f"budget.{name} must be a whole number from 1 up, not {value!r}; try {example}, or leave it out "
                    "for no limit"
                )

    @property
    def is_second(self) -> bool:
        """Whether the budget limits tokens or calls, and not time alone."""
        return any(self.limit(kind) is not None for kind in _KINDS)

    @property
    def needs_usage(self) -> bool:
        """Whether the budget can be charged only if responses report their token counts."""
        return self.tokens is not None

    def limit(self, kind: Kind) -> int | None:
        """Return the limit on "tokens" or "calls"; None if there is none."""
        limit: int | None = getattr(self, kind)
        return limit

    def second_as_json(self) -> dict[str, Any]:
        """Return the limits other than time as JSON types; leave out those that are not set."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "time_s"}

    @property
    def level(self) -> str:
        """The name of the limits other than time in the tables: "6000 tokens, 12 calls", or "none"."""
        limits = {kind: self.limit(kind) for kind in _KINDS}
        phrases = [f"{limit} {kind}" for kind, limit in limits.items() if limit is not None]
        return ", ".join(phrases) or NO_BUDGETS


def require_one_time_budget(budget: Budget, decision_timeout_s: float) -> None:
    """Require that `budget.time_s` is None or the decision timeout. Raises: ConfigurationError."""
    if budget.time_s not in (None, decision_timeout_s):
        raise ConfigurationError(
            f"budget.time_s is {budget.time_s:g} and the decision timeout {decision_timeout_s:g}; they are one budget: "
            "give it once"
        )


def order_of_level(level: str) -> tuple[float, ...]:
    """Return a key that sorts texts of `Budget.level`: the tightest limits first, "none" last."""
    limits = {kind: float(limit) for limit, kind in (part.split(" ") for part in level.split(", ") if " " in part)}
    return tuple(limits.get(kind, math.inf) for kind in _KINDS)


@dataclass(frozen=True)
class Spent:
    """The tokens and calls that a run has used."""

    tokens: int = 0
    calls: int = 0


class Meter:
    """Counts what one run has spent of its budget. Any thread may use it.

    is_enforced: off, it counts and refuses nothing. has_cut: whether a reply was cut at the end of
    the budget of tokens.
    """

    def __init__(self, budget: Budget, *, is_enforced: bool = True) -> None:
        self.budget, self.is_enforced = budget, is_enforced
        self.has_cut = False
        self._tokens, self._calls = 0, 0
        self._lock = threading.Lock()

    def spent(self) -> Spent:
        """Return the tokens and calls spent so far."""
        with self._lock:
            return self._spent()

    def _spent(self) -> Spent:
        return Spent(self._tokens, self._calls)

    def admit(self, role: str, source: str) -> None:
        """Check the budget and count one more request, in one step: no two requests get the last call.

        Raises: TokensSpent or CallsSpent when nothing is left; it is not counted then.
        """
        with self._lock:
            refusal = self._refusal(role, source)
            if refusal is not None:
                raise refusal
            self._calls += 1

    def refusal(self, role: str, source: str) -> SpendingRefused | None:
        """Return the error that `admit` would raise now; None if it would admit a request."""
        with self._lock:
            return self._refusal(role, source)

    def charge(self, input_tokens: int, output_tokens: int) -> None:
        """Add the tokens that a response reports to what is spent."""
        with self._lock:
            self._tokens += input_tokens + output_tokens

    def reply_cap(self) -> int | None:
        """Return the most tokens that the next reply may have, at least 1; None if no enforced budget is close.

        What the question itself takes is not known before it is asked, and is not taken off.
        """
        with self._lock:
            limit = self.budget.tokens
            if limit is None or not self.is_enforced or limit - self._tokens > _LARGEST_CAP:
                return None
            return max(1, limit - self._tokens)

    def _refusal(self, role: str, source: str) -> SpendingRefused | None:
        if not self.is_enforced:
            return None
        spent = self._spent()
        for kind, error in _ERRORS.items():
            limit, used = self.budget.limit(kind), getattr(spent, kind)
            if limit is not None and used >= limit:
                message = f"{role}: a call was refused at {source}: {used} of {limit} {error.budget} are spent"
                return error(message, role=role, limit=limit, spent=used, source=source)
        return None


_ERRORS: dict[Kind, type[SpendingRefused]] = {"tokens": TokensSpent, "calls": CallsSpent}


def current_meter() -> Meter | None:
    """Return the meter of the run that the calling code belongs to; None outside a metered run."""
    meter: Meter | None = in_force().meter
    return meter


class metering(in_force_scope):  # noqa: N801 - used as the functions beside it are
    """Put a meter in force during a block, and in threads and tasks started with its context."""

    __slots__ = ("_meter",)

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def __enter__(self) -> Meter:  # type: ignore[override]
        super().__init__(in_force()._replace(meter=self._meter))
        super().__enter__()
        return self._meter
