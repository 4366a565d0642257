"""The fields of a study and the levels of its factors, as a study file writes them and as values to run with."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison_run import default_side_by_side
from docmind_lab.experiments.comparison.documents import Documents, documents_in
from docmind_lab.experiments.comparison.own_graph import own_names, require_own_world
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR
from docmind_lab.experiments.world_options import World
from docmind_lab.statistics.latency.profile import LatencyProfile, latency_profile
from docmind_lab.systems.own import OwnGraph
from docmind_lab.systems.system_catalogue import LAB_SYSTEMS, DocMind, OwnSystem

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
    "own" leaves the clients their defaults. server_behaviour: "own" is what `stops_on_disconnect` says, else as
    `compare` takes one. adoption: share of the services of workload hops that hold to a deadline on the wire. fault: as
    `compare` takes one; several together are joined by "+".
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    alternative: Levels[Any] = Field(default_factory=lambda: tuple(ALTERNATIVES))
    decision_timeout_s: Numbers[float] = (20.0,)
    deadline_propagation: Levels[bool | Literal["own"]] = ("own",)
    router_injection: Levels[bool] = (False,)
    latency_profile: Levels[Any] = (_PROFILE,)
    fault: Levels[str] = ("none",)
    stops_on_disconnect: Levels[bool] = (True,)
    server_behaviour: Levels[str] = ("own",)
    adoption: Numbers[float] = (0.0,)
    node_mode: Levels[Literal["own", "sync", "async", "blocking"]] = ("own",)
    retries: Numbers[int | Literal["own"]] = ("own",)
    workload: Levels[str] = ("supervisor",)
    clock: Levels[ClockName] = ("virtual",)

    @property
    def combinations(self) -> int:
        """Number of combinations of levels, impossible ones included."""
        others = (name for name in type(self).model_fields if name != "alternative")
        return len(_items(self)) * math.prod(len(getattr(self, name)) for name in others)


FACTORS: Final = {
    "alternatives": "alternative",
    "latencies": "latency_profile",
    "faults": "fault",
    "system": "workload",
}
"""What a factor is called in a study file → what a design and its stored manifest call it."""

_FACTORS_OF_NOUNS: Final = (
    "retries",
    "router_injection",
    "adoption",
    "latencies",
    "faults",
    "server",
    "clock",
)
"""Fields of systems and worlds that a study varies."""


def designed_factors(factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return factors by the names that a design and its stored manifest have for them."""
    design = {FACTORS.get(name, name): levels for name, levels in factors.items()}
    if "workload" in design:
        levels = _as_list(design["workload"])
        design["workload"] = [LAB_SYSTEMS[each].kind if each in LAB_SYSTEMS else each for each in levels]
    if "server" in design:
        # A design has the two extremes as a switch, as it had before there were profiles.
        levels = _as_list(design.pop("server"))
        switch = [level == STOPS.name for level in levels if level in (STOPS.name, GOES_ON.name)]
        profiles = [level for level in levels if level not in (STOPS.name, GOES_ON.name)]
        design |= {"stops_on_disconnect": switch} if switch else {}
        design |= {"server_behaviour": [*(["own"] if switch else []), *profiles]} if profiles else {}
    return design


def levels_in(noun: Any) -> tuple[Any, dict[str, Any]]:
    """Return a system or a world without what a study varies, and the levels of that by factor, one each."""
    defaults = {each.name: each.default for each in dataclasses.fields(noun) if each.name in _FACTORS_OF_NOUNS}
    levels = {name: getattr(noun, name) for name in defaults}
    # The clock of live endpoints is their default, and not that of a study.
    levels = {
        name: level
        for name, level in levels.items()
        if level is not None and (name == "clock" or level != defaults[name])
    }
    # Several of them are one level: together, and by role.
    for name, between in (("faults", "+"), ("latencies", ",")):
        if isinstance(levels.get(name), list | tuple):
            levels[name] = between.join(map(str, levels[name]))
    return dataclasses.replace(noun, **defaults), designed_factors(levels)


class StudyFields(BaseModel):
    """The fields of a study.

    name: the beginning of the study's id. repeats: runs in each combination. system, world: what is under the deadline
    and what it meets, as `compare` takes them, without what the factors vary; paths as seen from the working directory.
    horizon_factor: a run is observed for so many times its decision timeout. side_by_side: runs under way at once on
    the wall clock; when left out one at a live endpoint, which all of them share, and of a graph of one's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")] = "sweep"
    seed: int = 7
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 40
    system: Any = DocMind()
    world: Any = World()
    horizon_factor: Annotated[float, Field(gt=1)] = HORIZON_FACTOR
    side_by_side: Annotated[int, Field(ge=1)] = Field(
        default_factory=lambda values: default_side_by_side(
            Settings(), is_own=isinstance(values.get("system"), OwnSystem)
        )
    )
    factors: Factors = Factors()

    @functools.cached_property
    def own(self) -> OwnGraph | None:
        """Names of a user's own graph or agent and of its inputs; None for another system. Raises: as `own_names`."""
        if not isinstance(self.system, OwnSystem):
            return None
        require_own_world(self.system, World(), "virtual", Settings())
        return own_names(self.system, "simulated", getattr(self.world, "endpoints", None))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the systems: the levels of the factor, or else the one that the study names."""
        if self.own is not None:
            return (self.own.workload,)
        return self.factors.workload if "workload" in self.factors.model_fields_set else (self.system.kind,)

    @functools.cached_property
    def library(self) -> Documents:
        """The documents that are searched, and the user's questions about them. Raises: as `documents_in`."""
        return documents_in(self.system) if self.own is None else Documents(self.own.corpus)

    @property
    def budget(self) -> Budget:
        """What each run may use of tokens, calls and money."""
        return dataclasses.replace(self.system.budget or Budget(), time_s=None)


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


def behaviours_of(factors: Factors) -> list[ServerBehaviour]:
    """Return what servers do when their client leaves: the extremes of the switch, and profiles beside them."""
    extremes = [STOPS if stops else GOES_ON for stops in factors.stops_on_disconnect]
    behaviours: list[ServerBehaviour] = []
    for level in factors.server_behaviour:
        behaviours += extremes if level == "own" else values_of("server_behaviour", [level], ServerBehaviour.named)
    return behaviours


def profile_of(level: Any) -> LatencyProfile:
    """Return the latency profile of one level."""
    if not isinstance(level, str | LatencyProfile | Mapping):
        raise ConfigurationError(f"{level!r} is no profile, no name of one, and no table of profiles by role")
    return latency_profile(level, _PROFILE)
