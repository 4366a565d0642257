"""Policies for the time before a deadline: hedges, timeouts, retries, and agents that know how much time is left.

    TimePolicies.parse("hedge")                              # a second request after the 90th percentile
    TimePolicies.parse("hedge:2s+retry_budget:0.1")          # after two seconds; one retry for ten calls
    TimePolicies.parse("aware+wind_down:0.25")               # the model is told; no tools in the last quarter

To enforce a deadline is one thing, to spend its time well another. Each policy applies to a run under an alternative
that propagates the deadline. None is on by default.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.core.call_history import CallHistory
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.time_left import TELLING_STYLES, TellingStyle


@dataclass(frozen=True)
class Hedge:
    """Sends a second request for a call that takes long, and keeps the answer that comes first.

    The other request is cancelled. What its server does then, and what it costs, is the server's behaviour.

    Args:
        quantile: Of the role's calls so far: the second request is sent when the first has taken longer.
        after_s: Seconds in place of the quantile.
        at_least: Calls of the role that must be known before a quantile is taken.
    """

    quantile: float = 0.9
    after_s: float | None = None
    at_least: int = 5

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("hedge", self, self.quantile if self.after_s is None else f"{self.after_s:g}s")

    def wait_s(self, role: str, history: CallHistory) -> float:
        """Return after how many seconds the second request is sent; inf for never."""
        if self.after_s is not None:
            return self.after_s
        return history.quantile(role, self.quantile) if len(history.durations(role)) >= self.at_least else math.inf


@dataclass(frozen=True)
class CallTimeout:
    """Cuts a call after a time of its own, and lets it be tried again.

    Args:
        quantile: Of the role's calls so far; the timeout is `margin` times as long.
        after_s: Seconds in place of the quantile.
        margin: Factor on the quantile.
        floor_s: Least timeout that is learned, seconds.
        ceiling_s: Longest timeout that is learned, seconds; also the timeout while too little is known.
        at_least: Calls of the role that must be known before a quantile is taken.
        forgets_cuts: Whether it learns only from calls that ended. A mistake, kept to be shown: the timeout collapses.
    """

    quantile: float = 0.95
    after_s: float | None = None
    margin: float = 1.0
    floor_s: float = 0.05
    ceiling_s: float = math.inf
    at_least: int = 5
    forgets_cuts: bool = False

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        if self.after_s is not None:
            return f"call_timeout:{self.after_s:g}s"
        return _text("naive_timeout" if self.forgets_cuts else "adaptive_timeout", self, self.quantile)

    def timeout_s(self, role: str, history: CallHistory) -> float:
        """Return the timeout of a call that begins now, seconds; inf for none."""
        if self.after_s is not None:
            return self.after_s
        if len(history.durations(role)) < self.at_least:
            return self.ceiling_s
        learned_s = history.quantile(role, self.quantile, forgets_cuts=self.forgets_cuts)
        return min(self.ceiling_s, max(self.floor_s, self.margin * learned_s))


@dataclass(frozen=True)
class RetryBudget:
    """Allows retries as a share of the calls of a session, so that a crew does not multiply an outage.

    Args:
        share: Retries allowed for each call.
        at_least: Retries allowed however few calls there were.
    """

    share: float = 0.1
    at_least: int = 1

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("retry_budget", self, self.share)


@dataclass(frozen=True)
class CircuitBreaker:
    """Refuses calls for some time after several have failed in a row, then lets one through as a trial.

    Args:
        failures: Attempts that fail in a row before calls are refused.
        open_s: Seconds for which they are refused.
    """

    failures: int = 5
    open_s: float = 10.0

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("circuit_breaker", self, self.failures)


@dataclass(frozen=True)
class Aware:
    """Tells the model how much time is left, in a line of the system message.

    Args:
        style: How it is told, one of `TELLING_STYLES`.
    """

    style: TellingStyle = "seconds"

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("aware", self, self.style)


@dataclass(frozen=True)
class WindDown:
    """Takes the tools from agents when little time is left, so that they answer with what they have.

    Args:
        share: Of the time limit: with less than that left, no tool is offered and no further search begins.
    """

    share: float = 0.25

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("wind_down", self, self.share)


@dataclass(frozen=True)
class Anytime:
    """Keeps a draft of the answer current, so that a run that is cut has something to return."""

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return "anytime"


@dataclass(frozen=True)
class Admission:
    """Refuses a query at once that is likely to miss its deadline.

    The likelihood is the share in time of earlier queries that began beside about as many others.

    Args:
        share: A query is refused when fewer than this share of those were in time.
    """

    share: float = 0.5

    @property
    def text(self) -> str:
        """The policy as `TimePolicies.parse` reads it."""
        return _text("admission", self, self.share)


@dataclass(frozen=True)
class TimePolicies:
    """The policies that are in force for a run.

    Args:
        hedge: When a second request is sent.
        call_timeout: When a call is cut before the deadline.
        retry_budget: How many retries there are.
        circuit_breaker: When calls are refused.
        aware: How the model is told of the time left.
        wind_down: When agents lose their tools.
        anytime: Whether a draft is kept current.
        admission: When a query is refused before it begins.
    """

    hedge: Hedge | None = None
    call_timeout: CallTimeout | None = None
    retry_budget: RetryBudget | None = None
    circuit_breaker: CircuitBreaker | None = None
    aware: Aware | None = None
    wind_down: WindDown | None = None
    anytime: Anytime | None = None
    admission: Admission | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the policies in force."""
        return tuple(part.text.partition(":")[0] for part in vars(self).values() if part is not None)

    @property
    def text(self) -> str:
        """The policies as `parse` reads them; empty for none."""
        return "+".join(part.text for part in vars(self).values() if part is not None)

    @classmethod
    def parse(cls, text: str) -> TimePolicies:
        """Return the policies that a text names.

        Args:
            text: Names joined by "+", each with one value after a colon where that is not the default: "hedge",
                "hedge:0.95" (a quantile), "hedge:2s", "adaptive_timeout:0.99", "call_timeout:5s", "retry_budget:0.2",
                "circuit_breaker:3", "aware:words", "wind_down:0.3", "anytime", "admission:0.5". Empty or "none" for
                none.

        Raises:
            ConfigurationError: A name is unknown, a value cannot be used, or two take the same place.
        """
        chosen: dict[str, Any] = {}
        for part in (each.strip() for each in text.split("+")):
            if part in ("", "none"):
                continue
            name, _, value = part.partition(":")
            if name not in _MAKERS:
                raise ConfigurationError(f"unknown policy {part!r}; the policies are {', '.join(_MAKERS)}")
            field, make = _MAKERS[name]
            if field in chosen:
                raise ConfigurationError(f"policies {text!r}: {name} takes the place of another one; name one of them")
            try:
                chosen[field] = make(value)
            except ValueError as error:
                raise ConfigurationError(f"policy {part!r}: {error}") from error
        return cls(**chosen)


def _text(name: str, policy: Any, value: float | str) -> str:
    """Return the name, with its one value where that is not the default."""
    is_default = policy == _MAKERS[name][1]("")
    return name if is_default else f"{name}:{value if isinstance(value, str) else f'{value:g}'}"


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise ValueError(f"give a number above 0 and below 1, such as 0.9, not {text!r}")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"give seconds above 0, such as 2s, not {text!r}")
    return value


def _hedge(value: str) -> Hedge:
    if value.endswith("s"):
        return Hedge(after_s=_seconds(value))
    return Hedge(quantile=_share(value)) if value else Hedge()


def _adaptive(value: str) -> CallTimeout:
    return CallTimeout(quantile=_share(value)) if value else CallTimeout()


def _naive(value: str) -> CallTimeout:
    return CallTimeout(quantile=_share(value) if value else 0.95, forgets_cuts=True)


def _fixed(value: str) -> CallTimeout:
    return CallTimeout(after_s=_seconds(value))


def _retries(value: str) -> RetryBudget:
    return RetryBudget(_share(value)) if value else RetryBudget()


def _breaker(value: str) -> CircuitBreaker:
    if value and not (value.isdecimal() and int(value)):
        raise ValueError(f"give a number of failures of 1 or more, such as 5, not {value!r}")
    return CircuitBreaker(int(value)) if value else CircuitBreaker()


def _aware(value: str) -> Aware:
    style = next((style for style in TELLING_STYLES if style == (value or "seconds")), None)
    if style is None:
        raise ValueError(f"give one of {', '.join(TELLING_STYLES)}, not {value!r}")
    return Aware(style)


def _wind_down(value: str) -> WindDown:
    return WindDown(_share(value)) if value else WindDown()


def _anytime(value: str) -> Anytime:
    if value:
        raise ValueError(f"it takes no value; leave out {value!r}")
    return Anytime()


def _admission(value: str) -> Admission:
    return Admission(_share(value)) if value else Admission()


_MAKERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "hedge": ("hedge", _hedge),
    "adaptive_timeout": ("call_timeout", _adaptive),
    "naive_timeout": ("call_timeout", _naive),
    "call_timeout": ("call_timeout", _fixed),
    "retry_budget": ("retry_budget", _retries),
    "circuit_breaker": ("circuit_breaker", _breaker),
    "aware": ("aware", _aware),
    "wind_down": ("wind_down", _wind_down),
    "anytime": ("anytime", _anytime),
    "admission": ("admission", _admission),
}
"""Name of a policy → the field of `TimePolicies` that it takes, and what makes it of its value."""


def policy_names() -> tuple[str, ...]:
    """Return the names of the policies."""
    return tuple(_MAKERS)
