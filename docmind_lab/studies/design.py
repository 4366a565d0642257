"""What a study is: factors × levels × repeats, as Python or TOML, and the combinations that follow.

    StudyDesign.of({"factors": {"alternative": ["A", "B"], "decision_timeout_s": [5, 10]}, "repeats": 20})
    StudyDesign.read("study.toml")

    seed = 7                            # keys questions, latencies, faults; each repeat has a seed of its own
    repeats = 20                        # questions asked in each combination

    [factors]                           # a level, or a list of them
    alternative = ["unguarded", "A", "B"]
    decision_timeout_s = [5, 10, 20]
    fault = ["none", "hang:planner"]

All combinations of one repeat have one seed, so they meet the same question, latencies and faults (common random
numbers).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.budgets import NO_BUDGETS
from docmind_lab.clocks import ClockName
from docmind_lab.comparison.design import HORIZON_FACTOR, SIDE_BY_SIDE, Comparison
from docmind_lab.deadlines import require_seconds
from docmind_lab.errors import ConfigurationError
from docmind_lab.labels import label_of
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.settings import Settings
from docmind_lab.studies.budget_levels import FIELDS, NoLimit, second_budget
from docmind_lab.studies.combinations import Combination, Impossible, with_colour, with_propagation
from docmind_lab.studies.replayed import SETTLED_FACTORS, completed, recording_in, replayed
from docmind_lab.studies.study_files import explained, read_study_file
from docmind_lab.workloads.kinds import workload_kind

MOST_RUNS = 1_000_000
MOST_REPEATS = 10_000


def _listed(value: Any) -> Any:
    """A single level as a list of one."""
    return value if isinstance(value, list | tuple) else [value]


def _numbers(value: Any) -> Any:
    """Levels that are numbers; a truth value is none, though Python counts with it."""
    levels = _listed(value)
    if any(isinstance(level, bool) for level in levels):
        raise ValueError("a truth value is no number")
    return levels


Level = TypeVar("Level")
Levels = Annotated[tuple[Level, ...], BeforeValidator(_listed), Field(min_length=1)]
Numbers = Annotated[tuple[Level, ...], BeforeValidator(_numbers), Field(min_length=1)]


class Factors(BaseModel):
    """The factors and their levels; one level or a list of them for each.

    alternative: levels, letters or variants as `compare` takes them, or instances. decision_timeout_s: seconds.
    deadline_propagation: "own" leaves it to the alternative; true and false set it. node_colour: "own", or what an
    async alternative finds: "sync" or "blocking_async" nodes. retries: tries after the first of whoever retries;
    "own" leaves the clients their defaults. budget_tokens, budget_calls, budget_cost: what a run may use beside time,
    "none" for no limit; cost is that of the study's `price`. fault: as `compare` takes one; several together are joined
    by "+".
    """

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    alternative: Levels[Any] = tuple(ALTERNATIVES)
    decision_timeout_s: Numbers[float] = (20.0,)
    deadline_propagation: Levels[bool | Literal["own"]] = ("own",)
    router_injection: Levels[bool] = (False,)
    latency_profile: Levels[Any] = ("heavy_tail/3",)
    fault: Levels[str] = ("none",)
    stops_on_disconnect: Levels[bool] = (True,)
    node_colour: Levels[Literal["own", "sync", "async", "blocking_async"]] = ("own",)
    retries: Numbers[int | Literal["own"]] = ("own",)
    budget_tokens: Numbers[int | NoLimit] = (NO_BUDGETS,)
    budget_calls: Numbers[int | NoLimit] = (NO_BUDGETS,)
    budget_cost: Numbers[float | NoLimit] = (NO_BUDGETS,)
    workload: Levels[str] = ("supervisor",)
    clock: Levels[ClockName] = ("virtual",)

    @property
    def combinations(self) -> int:
        """How many combinations of levels there are, those that cannot be among them."""
        others = (name for name in type(self).model_fields if name != "alternative")
        return len(_items(self)) * math.prod(len(getattr(self, name)) for name in others)


class StudyDesign(BaseModel):
    """What determines a study. Raises: ConfigurationError naming the field, from `of` and `read`.

    name: the beginning of the study's id. repeats: runs in each combination. horizon_factor: a run is observed for so
    many times its decision timeout. side_by_side: runs under way at once on the wall clock. price: "INPUT/OUTPUT", of a
    million tokens of each, such as "0.15/0.60"; the cost of every run is measured with it, and `budget_cost` needs it.
    replay: the folder of a recording that the study is swept over; it settles much, see `studies/replayed.py`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")] = "sweep"
    seed: int = 7
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 40
    corpus: str = "language_reference"
    horizon_factor: Annotated[float, Field(gt=1)] = HORIZON_FACTOR
    side_by_side: Annotated[int, Field(ge=1)] = SIDE_BY_SIDE
    price: str | None = None
    replay: str | None = None
    factors: Factors = Factors()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The design that the values describe, checked as a whole.

        Raises: ConfigurationError naming each field that does not fit, with what does.
        """
        try:
            complete = completed(values, Settings()) if values.get("replay") is not None else dict(values)
            design = cls.model_validate(complete)
        except ValidationError as error:
            raise ConfigurationError(explained(error, cls)) from error
        at_most = design.factors.combinations * design.repeats
        if at_most > MOST_RUNS:
            raise ConfigurationError(
                f"repeats: the study would have up to {at_most:,} runs, above {MOST_RUNS:,}: leave out levels, or "
                "repeat less"
            )
        _ = design.planned  # what cannot be run is said here, not when it is run
        return design

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The design in a TOML file. Raises: ConfigurationError naming the file and what is wrong in it."""
        values = read_study_file(path)
        try:
            return cls.of(values)
        except ConfigurationError as error:
            raise ConfigurationError(f"study file {path}: {error}") from error

    @functools.cached_property
    def planned(self) -> Planned:
        """The combinations, and those that cannot be."""
        return _planned(self)

    @property
    def total_runs(self) -> int:
        """Runs of all combinations together."""
        return len(self.planned.combinations) * self.repeats

    def to_dict(self) -> dict[str, Any]:
        """What determines the runs, as JSON; equal designs have equal ones."""
        # Only where there are some: a study without second budgets is the one that it was before there were any.
        unsaid = {name for name in FIELDS if getattr(self.factors, name) == (NO_BUDGETS,)}
        unset = {name for name in ("price", "replay") if getattr(self, name) is None}
        values = self.model_dump(mode="python", exclude={"factors", *unset})
        factors = self.factors.model_dump(mode="python", exclude={"alternative", "latency_profile", *unsaid})
        factors["alternative"] = [
            {"name": item.name, "options": json.loads(options_json(item))} for item in _alternatives(self.factors)
        ]
        if self.replay is None:
            factors["latency_profile"] = [_profile(item).to_dict() for item in self.factors.latency_profile]
        else:
            # By its name: the folder may lie elsewhere tomorrow. What it settles, its own manifest has.
            values["replay"] = recording_in(self.replay).id
            factors = {name: levels for name, levels in factors.items() if name not in SETTLED_FACTORS}
        jsonable: dict[str, Any] = json.loads(json.dumps({**values, "factors": factors}))
        return jsonable

    def __repr__(self) -> str:
        title = f"StudyDesign {self.name!r}, seed {self.seed}"
        try:
            runs = f"{len(self.planned.combinations)} combinations × {self.repeats} repeats = {self.total_runs:,} runs"
            named = [_label(item) for item in _alternatives(self.factors)]
        except ConfigurationError as error:
            # A name that nothing has is found when the runs are planned, and to look at a design must not raise.
            return f"{title}: {error}"
        profiles = [_profile(item).name for item in self.factors.latency_profile]
        levels = {**dict(self.factors), "alternative": named, "latency_profile": profiles}
        told = [name for name, values in levels.items() if name in self.factors.model_fields_set or len(values) > 1]
        lines = [f"  {name}: {', '.join(_level(value) for value in levels[name])}" for name in told]
        lines += [] if self.replay is None else [f"  replay: {self.replay}"]
        lines += [] if self.price is None else [f"  price: {self.price} for a million tokens read and written"]
        return "\n".join([f"{title}: {runs}", *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"

    @property
    def study_id(self) -> str:
        """A name derived from the design: the same study has the same one."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return f"{self.name}-{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"


@dataclass(frozen=True)
class Planned:
    """The combinations of a design. left_out: those that cannot be, each with its reason."""

    combinations: tuple[Combination, ...]
    left_out: tuple[str, ...]


def _planned(design: StudyDesign) -> Planned:
    found: dict[tuple[object, ...], Combination] = {}
    left_out: list[str] = []
    for combination in _combinations(design):
        if isinstance(combination, Impossible):
            left_out.append(combination.reason)
        else:
            # "own" and what an alternative does by itself are one combination.
            found.setdefault(combination.key, combination)
    if not found:
        raise ConfigurationError(f"factors: no combination can be run: {'; '.join(dict.fromkeys(left_out))}")
    return Planned(tuple(found.values()), tuple(dict.fromkeys(left_out)))


def _combinations(design: StudyDesign) -> Iterator[Combination | Impossible]:
    factors = design.factors
    alternatives = _alternatives(factors)
    with _naming("latency_profile"):
        profiles = [_profile(item) for item in factors.latency_profile]
    with _naming("fault"):
        faults = [tuple(Fault.parse(part) for part in level.split("+")) for level in factors.fault]
    with _naming("workload"):
        for workload in factors.workload:
            workload_kind(workload)
    with _naming("decision_timeout_s"):
        for level_s in factors.decision_timeout_s:
            require_seconds("decision timeout", level_s)
    limits = itertools.product(factors.budget_tokens, factors.budget_calls, factors.budget_cost)
    budgets = [second_budget(tokens, calls, cost, design.price) for tokens, calls, cost in limits]
    # The budgets vary fastest but for the arms, and what costs a worker a new system varies slowest.
    for (
        (clock, workload),
        injection,
        colour,
        retries,
        profile,
        fault,
        stops,
        (timeout_s, budget),
        propagation,
        alternative,
    ) in itertools.product(
        list(itertools.product(factors.clock, factors.workload)),
        factors.router_injection,
        factors.node_colour,
        factors.retries,
        profiles,
        faults,
        factors.stops_on_disconnect,
        list(itertools.product(factors.decision_timeout_s, budgets)),
        factors.deadline_propagation,
        alternatives,
    ):
        chosen = with_propagation(alternative, propagation)
        node_colour = with_colour(alternative, colour)
        if isinstance(chosen, Impossible):
            yield chosen
            continue
        if isinstance(node_colour, Impossible):
            yield node_colour
            continue
        tries = None if retries == "own" else retries
        if design.replay is not None:
            yield Combination(
                replayed(
                    design.replay,
                    chosen,
                    decision_timeout_s=timeout_s,
                    runs=design.repeats,
                    retries=tries,
                    budget=budget,
                    settings=Settings(),
                )
            )
            continue
        yield Combination(
            Comparison(
                decision_timeout_s=timeout_s,
                runs=design.repeats,
                seed=design.seed,
                alternatives=parse_alternatives([chosen], tries, budgeted_retries=Settings().agents.max_retries),
                profile=profile,
                faults=fault,
                stops_on_disconnect=stops,
                client_retries=tries,
                horizon_factor=design.horizon_factor,
                side_by_side=design.side_by_side,
                router_injection=injection,
                clock=clock,
                corpus=design.corpus,
                node_colour=node_colour,
                workload=workload,
                budget=budget,
            )
        )


def _alternatives(factors: Factors) -> tuple[Alternative, ...]:
    items = _items(factors)
    for item in items:
        if not isinstance(item, str) and not hasattr(item, "run"):
            raise ConfigurationError(f"factors.alternative: {item!r} is neither a name nor an alternative")
    with _naming("alternative"):
        return parse_alternatives(items, budgeted_retries=Settings().agents.max_retries)


def _items(factors: Factors) -> list[Any]:
    """The alternatives as they are named; several may stand in one string."""
    return [part for item in factors.alternative for part in (item.split(",") if isinstance(item, str) else [item])]


@contextlib.contextmanager
def _naming(factor: str) -> Iterator[None]:
    """Say which factor a level that cannot be used is of."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"factors.{factor}: {error}") from error


def _label(alternative: Alternative) -> str:
    return " ".join(label_of(alternative.name, options_json(alternative)).split())


def _level(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _profile(level: Any) -> LatencyProfile:
    if isinstance(level, LatencyProfile):
        return level
    if not isinstance(level, str):
        raise ConfigurationError(f"{level!r} is neither a name nor a LatencyProfile")
    return LatencyProfile.named(level)
