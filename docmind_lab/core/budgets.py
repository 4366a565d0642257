"""Budgets for a run's tokens, calls and cost, and the meter that counts what the run has spent.

    budget = Budget(time_s=20, tokens=6000, calls=12, cost=0.02, price=Price(0.15, 0.60))
    with metering(Meter(budget)):           # around the run; threads and tasks started in it see the same meter
        ...

A budget holds for the run as a whole. It is checked before each request to the model, which is refused when nothing is
left, and charged when a response reports its usage. What a request will use is not known before it is sent: a request
under way may exceed the limit, and several at once by no more than they use.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from docmind_lab.core.deadlines import in_force, in_force_scope
from docmind_lab.core.errors import CallsSpent, ConfigurationError, CostSpent, SpendingRefused, TokensSpent
from docmind_lab.core.numbers import require_count, require_number, require_seconds
from docmind_lab.core.shown import ShownAsCode

Kind = Literal["tokens", "calls", "cost"]
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

NO_BUDGETS: Final = "none"
"""The name in the tables of a run without a budget of tokens, calls or cost."""

_MILLION = 1_000_000
# Sums of many small prices differ from the limit by rounding; a billionth of it is no overspending.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Price(ShownAsCode):
    """The price of a model for a million tokens, in any one currency.

    Args:
        input_per_million: Price of a million tokens read; a finite number of 0 or more.
        output_per_million: Price of a million tokens written; a finite number of 0 or more.

    Raises:
        ConfigurationError: One of them is something else; the message names it.
    """

    input_per_million: float
    output_per_million: float

    def __post_init__(self) -> None:
        for name in ("input_per_million", "output_per_million"):
            price, remedy = getattr(self, name), "try 0.15 for 0.15 a million tokens"
            require_number(f"price.{name}", price, "a finite number of 0 or more", least=0, remedy=remedy)

    @classmethod
    def parse(cls, text: str) -> Price:
        """Read a price written as "INPUT/OUTPUT".

        Args:
            text: Prices of a million tokens read and written, such as "0.15/0.60".

        Raises:
            ConfigurationError: The text is no two numbers of 0 or more.
        """
        try:
            read, written = (float(part) for part in text.split("/"))
        except ValueError as error:
            raise ConfigurationError(
                f"price must be INPUT/OUTPUT for a million tokens of each, such as 0.15/0.60, not {text!r}"
            ) from error
        return cls(read, written)

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return the cost of tokens read and tokens written, in the currency of the price.

        Args:
            input_tokens: Tokens read.
            output_tokens: Tokens written.
        """
        return (input_tokens * self.input_per_million + output_tokens * self.output_per_million) / _MILLION


@dataclass(frozen=True)
class Budget(ShownAsCode):
    """What one run may use of time, tokens, calls and money; None sets no limit.

    Args:
        time_s: The decision timeout, seconds.
        tokens: Tokens read and written, as responses count them.
        calls: Requests to the model, with each retry; searches do not count.
        cost: Money, in the currency of `price`, which must be given too.
        price: Price of the model. Alone it sets no limit, and lets the cost be measured.

    Raises:
        ConfigurationError: A budget cannot be used; the message names it.
    """

    time_s: float | None = None
    tokens: int | None = None
    calls: int | None = None
    cost: float | None = None
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.time_s is not None:
            require_seconds("budget.time_s", self.time_s)
        for name, example in (("tokens", 6000), ("calls", 12)):
            value = getattr(self, name)
            if value is not None:
                require_count(f"budget.{name}", value, remedy=f"try {example}, or leave it out for no limit")
        if self.price is not None and not isinstance(self.price, Price):
            raise ConfigurationError(f"budget.price must be a Price, not {self.price!r}; try Price(0.15, 0.60)")
        if self.cost is None:
            return
        remedy = "try 0.02, or leave it out for no limit"
        require_number("budget.cost", self.cost, "a finite number above 0", above=0, remedy=remedy)
        if self.price is None or self.price.cost(1, 1) == 0:
            raise ConfigurationError(
                "budget.cost needs a price above 0: give price=Price(input_per_million, output_per_million)"
            )

    @property
    def is_second(self) -> bool:
        """Whether the budget limits tokens, calls or cost, and not time alone."""
        return any(self.limit(kind) is not None for kind in _KINDS)

    @property
    def needs_usage(self) -> bool:
        """Whether the budget can be charged only if responses report their token counts."""
        return self.tokens is not None or self.cost is not None

    def limit(self, kind: Kind) -> float | None:
        """Return the limit on "tokens", "calls" or "cost"; None if there is none.

        Args:
            kind: "tokens", "calls" or "cost".
        """
        limit: float | None = getattr(self, kind)
        return limit

    def second_as_json(self) -> dict[str, Any]:
        """Return the limits other than time, and the price, as JSON types; leave out those that are not set."""
        return {name: value for name, value in asdict(self).items() if value is not None and name != "time_s"}

    @property
    def level(self) -> str:
        """The name of the limits other than time in the tables: "6000 tokens, 12 calls", or "none"."""
        limits = {kind: self.limit(kind) for kind in _KINDS}
        phrases = [f"{limit:.12g} {kind}" for kind, limit in limits.items() if limit is not None]
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
    """The tokens, calls and money that a run has used. cost: NaN without a price."""

    tokens: int = 0
    calls: int = 0
    cost: float = math.nan


class Meter:
    """Counts what one run has spent of its budget. Any thread may use it.

    is_enforced: off, it counts and refuses nothing.
    """

    def __init__(self, budget: Budget, *, is_enforced: bool = True) -> None:
        self.budget, self.is_enforced = budget, is_enforced
        self._tokens, self._calls, self._cost = 0, 0, 0.0
        self._lock = threading.Lock()

    def spent(self) -> Spent:
        """Return the tokens, calls and cost spent so far."""
        with self._lock:
            return self._spent()

    def _spent(self) -> Spent:
        return Spent(self._tokens, self._calls, math.nan if self.budget.price is None else self._cost)

    def admit(self, role: str, source: str) -> None:
        """Check the budget and count one more request, in one step: no two requests get the last call.

        Raises: TokensSpent, CallsSpent or CostSpent when nothing is left; it is not counted then.
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
        """Add the tokens that a response reports, and their cost, to what is spent."""
        with self._lock:
            self._tokens += input_tokens + output_tokens
            if self.budget.price is not None:
                self._cost += self.budget.price.cost(input_tokens, output_tokens)

    def _refusal(self, role: str, source: str) -> SpendingRefused | None:
        if not self.is_enforced:
            return None
        spent = self._spent()
        for kind, error in _ERRORS.items():
            limit, used = self.budget.limit(kind), getattr(spent, kind)
            if limit is not None and used >= limit * (1 - _ROUNDING):
                message = f"{role}: a call was refused at {source}: {used:.6g} of {limit:.6g} {error.budget} are spent"
                return error(message, role=role, limit=limit, spent=used, source=source)
        return None


_ERRORS: dict[Kind, type[SpendingRefused]] = {"tokens": TokensSpent, "calls": CallsSpent, "cost": CostSpent}


def current_meter() -> Meter | None:
    """Return the meter of the run that the calling code belongs to; None outside a metered run."""
    meter: Meter | None = in_force().meter
    return meter


@contextlib.contextmanager
def metering(meter: Meter) -> Iterator[Meter]:
    """Put a meter in force during a block, and in threads and tasks started with its context."""
    with in_force_scope(meter=meter):
        yield meter
