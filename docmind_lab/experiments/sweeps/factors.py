"""The factors of a study and their levels, as a study file writes them and as values to run with."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.budgets import NO_BUDGETS, Budget, Kind, Price
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import LatencyProfile, latency_profile

NoLimit = Literal["none"]
"""The level of a factor that sets no limit: `NO_BUDGETS`."""

FIELDS: Final[dict[str, Kind]] = {"budget_tokens": "tokens", "budget_calls": "calls", "budget_cost": "cost"}
"""Field of a study → the budget that it sets."""


_PROFILE: Final = "heavy_tail/3"


def second_budget(
    tokens: int | NoLimit | None = None,
    calls: int | NoLimit | None = None,
    cost: float | NoLimit | None = None,
    price: str | None = None,
) -> Budget:
    """Return the budget with these limits; "none" and None set none.

    Raises: ConfigurationError naming the field that cannot be used, and what can.
    """
    levels: dict[Kind, object] = {"tokens": tokens, "calls": calls, "cost": cost}
    limits = {kind: None if value == NO_BUDGETS else value for kind, value in levels.items()}
    if limits["cost"] is not None and price is None:
        raise ConfigurationError(
            'factors.budget_cost: what tokens cost is not said; give price = "INPUT/OUTPUT", for a million tokens of '
            'each, such as "0.15/0.60"'
        )
    try:
        known = None if price is None else Price.parse(price)
        return Budget(**limits, price=known)  # type: ignore[arg-type]
    except ConfigurationError as error:
        message = str(error)
        for field, kind in FIELDS.items():
            message = message.replace(f"budget.{kind} ", f"factors.{field} ")
        raise ConfigurationError(message) from error


def _as_list(value: Any) -> Any:
    """Wrap a single level in a list."""
    return value if isinstance(value, list | tuple) else [value]


def _numbers(value: Any) -> Any:
    """Return levels that are numbers; refuse booleans, which Python counts as numbers."""
    levels = _as_list(value)
    if any(isinstance(level, bool) for level in levels):
        raise ValueError("a truth value is no number")
    return levels


Level = TypeVar("Level")
Levels = Annotated[tuple[Level, ...], BeforeValidator(_as_list), Field(min_length=1)]
Numbers = Annotated[tuple[Level, ...], BeforeValidator(_numbers), Field(min_length=1)]


class Factors(BaseModel):
    """The factors of a study; each has one level or a list of levels.

    alternative: levels, letters or variants as `compare` takes them, or instances. decision_timeout_s: seconds.
    deadline_propagation: "own" leaves it to the alternative; true and false set it. node_mode: "own", or what an
    async alternative finds: "sync" or "blocking" nodes. retries: tries after the first, by client or lab;
    "own" leaves the clients their defaults. budget_tokens, budget_calls, budget_cost: what a run may use beside time,
    "none" for no limit; cost is that of the study's `price`. server_behaviour: "own" is what `stops_on_disconnect`
    says, else as `compare` takes one. adoption: share of the services of workload hops that hold to a deadline on the
    wire. policies: for the time of model calls, as `TimePolicies.parse` reads them, "none" for what the alternative
    has; only for alternatives that propagate. fault: as `compare` takes one; several together are joined by "+".
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    alternative: Levels[Any] = Field(default_factory=lambda: tuple(ALTERNATIVES))
    decision_timeout_s: Numbers[float] = (20.0,)
    deadline_propagation: Levels[bool | Literal["own"]] = ("own",)
    policies: Levels[str] = ("none",)
    router_injection: Levels[bool] = (False,)
    latency_profile: Levels[Any] = (_PROFILE,)
    fault: Levels[str] = ("none",)
    stops_on_disconnect: Levels[bool] = (True,)
    server_behaviour: Levels[str] = ("own",)
    adoption: Numbers[float] = (0.0,)
    node_mode: Levels[Literal["own", "sync", "async", "blocking"]] = ("own",)
    retries: Numbers[int | Literal["own"]] = ("own",)
    budget_tokens: Numbers[int | NoLimit] = (NO_BUDGETS,)
    budget_calls: Numbers[int | NoLimit] = (NO_BUDGETS,)
    budget_cost: Numbers[float | NoLimit] = (NO_BUDGETS,)
    workload: Levels[str] = ("supervisor",)
    clock: Levels[ClockName] = ("virtual",)

    @property
    def combinations(self) -> int:
        """Number of combinations of levels, impossible ones included."""
        others = (name for name in type(self).model_fields if name != "alternative")
        return len(_items(self)) * math.prod(len(getattr(self, name)) for name in others)


def alternatives_of(factors: Factors) -> tuple[Alternative, ...]:
    """Return the alternatives. Raises: ConfigurationError for an unusable level, as do the functions below."""
    items = _items(factors)
    for item in items:
        if not isinstance(item, str) and not hasattr(item, "run"):
            raise ConfigurationError(f"factors.alternative: {item!r} is neither a name nor an alternative")
    with naming_factor("alternative"):
        return parse_alternatives(items, budgeted_retries=Settings().agents.max_retries)


def _items(factors: Factors) -> list[Any]:
    """Return the alternatives as written; one string may hold several, separated by commas."""
    return [part for item in factors.alternative for part in (item.split(",") if isinstance(item, str) else [item])]


def behaviours_of(factors: Factors) -> list[tuple[bool, ServerBehaviour | None]]:
    """Return what servers do when their client leaves: the switch, or a profile in its place."""
    behaviours: list[tuple[bool, ServerBehaviour | None]] = []
    for level in factors.server_behaviour:
        if level == "own":
            behaviours += [(stops, None) for stops in factors.stops_on_disconnect]
        else:
            with naming_factor("server_behaviour"):
                behaviours.append((True, ServerBehaviour.named(level)))
    return behaviours


@contextlib.contextmanager
def naming_factor(factor: str) -> Iterator[None]:
    """Add the factor's name to a ConfigurationError about one of its levels."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"factors.{factor}: {error}") from error


def profiles_of(factors: Factors) -> list[LatencyProfile]:
    """Return the latency profile of each level."""
    with naming_factor("latency_profile"):
        return [profile_of(item) for item in factors.latency_profile]


def faults_of(factors: Factors) -> list[tuple[Fault, ...]]:
    """Return the faults of each level."""
    with naming_factor("fault"):
        return [tuple(Fault.parse(part) for part in level.split("+")) for level in factors.fault]


def policies_of(factors: Factors) -> list[TimePolicies]:
    """Return the time policies of each level."""
    with naming_factor("policies"):
        return [TimePolicies.parse(level) for level in factors.policies]


def budgets_of(factors: Factors, price: str | None) -> list[Budget]:
    """Return the second budgets: every combination of their limits."""
    limits = itertools.product(factors.budget_tokens, factors.budget_calls, factors.budget_cost)
    return [second_budget(tokens, calls, cost, price) for tokens, calls, cost in limits]


def profile_of(level: Any) -> LatencyProfile:
    """Return the latency profile of one level."""
    if not isinstance(level, str | LatencyProfile | Mapping):
        raise ConfigurationError(f"{level!r} is no profile, no name of one, and no table of profiles by role")
    return latency_profile(level, _PROFILE)
