"""The fields of a study and the levels of its factors, as a study file writes them and as values to run with."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.budgets import NO_BUDGETS, Budget, Kind, Price
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison_run import default_side_by_side
from docmind_lab.experiments.comparison.documents import Documents, documents_of
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR
from docmind_lab.services.scripted_model.time_pressure import DEFAULT_UNDER_PRESSURE
from docmind_lab.statistics.latency.profile import LatencyProfile, latency_profile
from docmind_lab.systems.base.corpus import HANDBOOK

NoLimit = Literal["none"]
"""The level of a factor that sets no limit: `NO_BUDGETS`."""

FIELDS: Final[dict[str, Kind]] = {"budget_tokens": "tokens", "budget_calls": "calls", "budget_cost": "cost"}
"""Field of a study → the budget that it sets."""

_PROFILE: Final = "heavy_tail/3"
MOST_REPEATS: Final = 10_000


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


class StudyFields(BaseModel):
    """The fields of a study, as a study file writes them.

    name: the beginning of the study's id. repeats: runs in each combination. documents, questions: as `compare` takes
    them; paths as seen from the working directory. horizon_factor: a run is observed for so many times its decision
    timeout. side_by_side: runs under way at once on the wall clock; when left out one at a live endpoint, which all of
    them share. cpu_charge: CPU seconds of each request in virtual time, or "measured". model_variation: share of the
    simulated model's decisions that vary. model_under_pressure: what that model does when its prompt says that little
    time is left. price: "INPUT/OUTPUT", of a million tokens of each, such as "0.15/0.60"; the
    cost of every run is measured with it, and `budget_cost` needs it. graph, agent, inputs, deadline_key, context,
    config, store, resume, endpoints: a graph of one's own, as `compare` takes them. replay: the folder of a
    recording that the study is swept over; it settles much, see `sweeps/settled.py`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")] = "sweep"
    seed: int = 7
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 40
    documents: str = HANDBOOK
    questions: str = ""
    horizon_factor: Annotated[float, Field(gt=1)] = HORIZON_FACTOR
    side_by_side: Annotated[int, Field(ge=1)] = Field(default_factory=lambda: default_side_by_side(Settings()))
    cpu_charge: Annotated[float, Field(ge=0, allow_inf_nan=False)] | Literal["measured"] = 0.0
    model_variation: Annotated[float, Field(ge=0, le=1)] = 0.0
    model_under_pressure: str = DEFAULT_UNDER_PRESSURE
    price: str | None = None
    graph: Any = None
    agent: Any = None
    inputs: Any = None
    deadline_key: str = DEADLINE_KEY
    context: Any = None
    config: dict[str, Any] | None = None
    store: Any = None
    resume: tuple[Any, ...] = ()
    endpoints: str | None = None
    replay: str | None = None
    factors: Factors = Factors()

    @functools.cached_property
    def library(self) -> Documents:
        """The documents that are searched, and the user's questions about them. Raises: as `documents_of`."""
        if self.is_of_own_graph:
            return Documents(self.documents)
        return documents_of(self.documents, self.questions or None)

    @property
    def is_of_own_graph(self) -> bool:
        """Whether the study is of a graph or an agent of one's own."""
        return self.graph is not None or self.agent is not None


Value = TypeVar("Value")


def values_of(factor: str, levels: Iterable[Level], parse: Callable[[Level], Value]) -> list[Value]:
    """Return the levels of a factor as values to run with. Raises: ConfigurationError naming the factor."""
    try:
        return [parse(level) for level in levels]
    except ConfigurationError as error:
        raise ConfigurationError(f"factors.{factor}: {error}") from error


def alternatives_of(factors: Factors) -> tuple[Alternative, ...]:
    """Return the alternatives. Raises: ConfigurationError for an unusable level."""
    items = _items(factors)
    for item in items:
        if not isinstance(item, str) and not hasattr(item, "run"):
            raise ConfigurationError(f"factors.alternative: {item!r} is neither a name nor an alternative")
    retries = Settings().agents.max_retries
    (made,) = values_of("alternative", [items], lambda each: parse_alternatives(each, budgeted_retries=retries))
    return made


def _items(factors: Factors) -> list[Any]:
    """Return the alternatives as written; one string may hold several, separated by commas."""
    return [part for item in factors.alternative for part in (item.split(",") if isinstance(item, str) else [item])]


def behaviours_of(factors: Factors) -> list[dict[str, Any]]:
    """Return what servers do when their client leaves: the switch, or a profile in its place, by field."""
    switches: list[dict[str, Any]] = [{"stops_on_disconnect": stops} for stops in factors.stops_on_disconnect]
    behaviours: list[dict[str, Any]] = []
    for level in factors.server_behaviour:
        profile = [] if level == "own" else values_of("server_behaviour", [level], ServerBehaviour.named)
        behaviours += [{"server_behaviour": each} for each in profile] or switches
    return behaviours


def budgets_of(factors: Factors, price: str | None) -> list[Budget]:
    """Return the second budgets: every combination of their limits.

    Raises: ConfigurationError naming the field that cannot be used, and what can.
    """
    limits = [[None if level == NO_BUDGETS else level for level in getattr(factors, field)] for field in FIELDS]
    if price is None and factors.budget_cost != (NO_BUDGETS,):
        raise ConfigurationError(
            'factors.budget_cost: what tokens cost is not said; give price = "INPUT/OUTPUT", for a million tokens of '
            'each, such as "0.15/0.60"'
        )
    try:
        known = None if price is None else Price.parse(price)
        combinations = (dict(zip(FIELDS.values(), limit, strict=True)) for limit in itertools.product(*limits))
        return [Budget(**each, price=known) for each in combinations]
    except ConfigurationError as error:
        # A budget calls them budget.tokens, budget.calls and budget.cost.
        raise ConfigurationError(str(error).replace("budget.", "factors.budget_")) from error


def profile_of(level: Any) -> LatencyProfile:
    """Return the latency profile of one level."""
    if not isinstance(level, str | LatencyProfile | Mapping):
        raise ConfigurationError(f"{level!r} is no profile, no name of one, and no table of profiles by role")
    return latency_profile(level, _PROFILE)
