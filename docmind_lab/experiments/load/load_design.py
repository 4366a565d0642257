"""The design of a load study: loads × replicates × what else is varied, and the crowds that follow.

Of the whole stack (`LoadDesign`) the alternatives are varied; on traces (`TracedLoadDesign`) decision timeouts, slots
and queue policies too. Both have one id, one JSON and one way to their cells.
"""

from __future__ import annotations

import abc
import functools
import itertools
import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from docmind_lab.alternatives import Alternative
from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import keyed_random, keyed_uniform
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.experiments.comparison.comparison import Comparison, study_id_of
from docmind_lab.experiments.load.arrivals import Arrivals, as_json
from docmind_lab.experiments.load.crowd import Query
from docmind_lab.experiments.load.on_traces.shapes import Recorded
from docmind_lab.experiments.load.on_traces.traced_server import POLICIES
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR, horizon_of
from docmind_lab.services.faults import Fault
from docmind_lab.services.plan import Pace
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.questions import load_questions
from docmind_lab.tables.traces.rules import NamedRule

# Each query under way is some threads of this process, and a crowd's rows are in memory until it ends.
_MOST_QUERIES: Final = 2_000
# Beyond that, the arrays of one crowd no longer fit beside each other in a worker.
_MOST_TRACED_QUERIES: Final = 1_000_000
_MOST_REPLICATES: Final = 1_000
# On the wall clock each query under way is some real threads and a connection to the service's log, which takes 100.
_MOST_UNDER_WAY: Final = 100

ArmT = TypeVar("ArmT")


@dataclass(frozen=True)
class LoadCell(Generic[ArmT]):
    """One crowd: a level of each factor, in one replicate.

    seed: of the replicate, the same at every load and under every arm: common random numbers. slots: of the model
    server; None for no limit. arm: an alternative, or its rule for traces.
    """

    id: str
    arrivals: Arrivals
    replicate: int
    seed: int
    decision_timeout_s: float
    slots: int | None
    queue_policy: str
    arm: ArmT


@dataclass(frozen=True, kw_only=True)
class CrowdsDesign(abc.ABC, Generic[ArmT]):
    """The part that every load study's design has: which crowds there are, and which of their queries are counted.

    Queries scheduled before `warm_up_s` load the provider and are not counted; None is the horizon, from when on the
    provider has abandoned work of every age. Those of the last decision timeout are not counted either, since fewer and
    fewer arrive behind them.
    """

    arrivals: tuple[Arrivals, ...]
    queries: int = 200
    replicates: int = 8
    seed: int = 7
    horizon_factor: float = HORIZON_FACTOR
    warm_up_s: float | None = None

    @property
    @abc.abstractmethod
    def factors(self) -> tuple[Sequence[float], Sequence[int | None], Sequence[str], Sequence[ArmT]]:
        """The levels of what is varied beside the load: decision timeouts, slots, queue policies, and the arms."""

    @abc.abstractmethod
    def design(self) -> dict[str, Any]:
        """Return everything that determines the queries, as JSON."""

    @property
    def beyond_json(self) -> str:
        """What determines the queries and is too long for the design."""
        return ""

    @functools.cached_property
    def study_id(self) -> str:
        """Id derived from the design: equal designs have equal ids."""
        return study_id_of("load", self.design(), self.beyond_json)

    def cells(self) -> Iterator[LoadCell[ArmT]]:
        """Yield every crowd, the highest load first, and all arms of a load and replicate together.

        It takes longest, and side by side all are done sooner when the longest does not come last.
        """
        for load, arrivals in sorted(enumerate(self.arrivals), key=lambda each: -each[1].rate_per_s):
            for replicate in range(self.replicates):
                for number, levels in enumerate(itertools.product(*self.factors)):
                    seed = self._replicate_seed(replicate)
                    yield LoadCell(f"{load}-{replicate}-{number}", arrivals, replicate, seed, *levels)

    @property
    def total_queries(self) -> int:
        """Number of queries of all crowds together."""
        return self.queries * self.replicates * len(self.arrivals) * math.prod(map(len, self.factors))

    def instants_of(self, cell: LoadCell[ArmT]) -> tuple[float, ...]:
        """Return the instants at which the queries of a crowd are scheduled, seconds since it began."""
        return cell.arrivals.instants(self.queries, cell.seed)

    def window_s(self, timeout_s: float, last_s: float) -> tuple[float, float]:
        """Return the instants between which queries are counted. last_s: when the last query arrives."""
        from_s = horizon_of(timeout_s, self.horizon_factor) if self.warm_up_s is None else self.warm_up_s
        return from_s, last_s - timeout_s

    def crowds_json(self) -> dict[str, Any]:
        """Return the fields that every load study has, as JSON."""
        return {
            "arrivals": [as_json(each) for each in self.arrivals],
            "queries": self.queries,
            "replicates": self.replicates,
            "seed": self.seed,
            "horizon_factor": self.horizon_factor,
        }

    def require_crowds(self, most_queries: int) -> None:
        """Return if each crowd has queries that are counted. Raises: ConfigurationError naming what cannot be used."""
        require_count("queries", self.queries, 2, most_queries)
        require_count("replicates", self.replicates, 1, _MOST_REPLICATES)
        if not self.horizon_factor > 1:
            raise ConfigurationError(f"horizon_factor must be above 1, not {self.horizon_factor}")
        if self.warm_up_s is not None and not 0 <= self.warm_up_s < math.inf:
            raise ConfigurationError(f"warm_up_s must be 0 or more seconds, or None for the horizon: {self.warm_up_s}")
        for timeout_s in self.factors[0]:
            require_seconds("decision timeout", timeout_s)
        if not self.arrivals:
            raise ConfigurationError("arrivals is empty; give at least one rate, such as 0.5 queries a second")
        loads = [(each.kind, each.rate_per_s) for each in self.arrivals]
        for kind, rate_per_s in loads:
            if loads.count((kind, rate_per_s)) > 1:
                raise ConfigurationError(f"arrivals has {kind} at {rate_per_s:g}/s twice; give each load once")
        for arrivals in self.arrivals:
            last_s = min(instants_s[-1] for instants_s in self._instants_of_replicates(arrivals))
            for timeout_s in self.factors[0]:
                self._require_window(arrivals, timeout_s, last_s)

    def _require_window(self, arrivals: Arrivals, timeout_s: float, last_s: float) -> None:
        from_s, until_s = self.window_s(timeout_s, last_s)
        if until_s <= from_s:
            needed = math.ceil(2 * arrivals.rate_per_s * (from_s + timeout_s))
            raise ConfigurationError(
                f"queries: {self.queries} at {arrivals.rate_per_s:g}/s arrive within {last_s:.0f} s, and none is "
                f"counted: the first {from_s:g} s are warm-up and the last {timeout_s:g} s meet less and less load; "
                f"take {needed} queries or more, or a shorter warm_up_s"
            )

    def _instants_of_replicates(self, arrivals: Arrivals) -> Iterator[tuple[float, ...]]:
        for replicate in range(self.replicates):
            yield arrivals.instants(self.queries, self._replicate_seed(replicate))

    def _replicate_seed(self, replicate: int) -> int:
        return keyed_random(self.seed, "replicate", replicate).getrandbits(48)


@dataclass(frozen=True)
class LoadDesign(CrowdsDesign[Alternative], Comparison):
    """What a load study of the whole stack runs: a comparison whose runs arrive. `run_load` makes it.

    callers: queries that the system takes at once; None for no limit. On the wall clock no more than a hundred queries
    may be under way at once.

    Raises: ConfigurationError for a value that cannot be used, by name.
    """

    callers: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.callers is not None:
            require_count("callers", self.callers, 1, _MOST_QUERIES)
        self.require_crowds(_MOST_QUERIES)
        if self.clock == "wall":
            for arrivals in self.arrivals:
                self._require_few_under_way(arrivals)

    @property
    def factors(self) -> tuple[Sequence[float], Sequence[int | None], Sequence[str], Sequence[Alternative]]:
        """The levels of what is varied beside the load, which are the alternatives."""
        return (self.decision_timeout_s,), (self.profile.slots,), ("first_come",), self.alternatives

    def design(self) -> dict[str, Any]:
        """Return everything that determines the queries, as JSON."""
        of_runs = Comparison.design(self)
        names = ["alternatives", "latency_profile", "decision_timeout_s", "stops_on_disconnect"]
        names += ["client_retries", "router_injection"]
        # Only where they are not the usual ones, so that the ids of other studies stay what they were.
        names += (["clock"] if self.clock != "virtual" else []) + (["fault"] if self.faults else [])
        own = {"callers": self.callers, "warm_up_s": self.window_s(self.decision_timeout_s, 0.0)[0], "corpus": HANDBOOK}
        return {name: of_runs[name] for name in names} | self.crowds_json() | own

    def queries_of(self, cell: LoadCell[Alternative]) -> tuple[Query, ...]:
        """Return the queries of a crowd, each with its instant, in order."""
        pool = sorted(load_questions(), key=lambda question: keyed_uniform(cell.seed, "question", question.id))
        return tuple(
            Query(
                self.order(
                    cell.arm,
                    keyed_random(cell.seed, "query", number).getrandbits(48),
                    pool[number % len(pool)],
                    f"{self.study_id}-{cell.id}-{number:04}",
                ),
                at_s,
            )
            for number, at_s in enumerate(self.instants_of(cell))
        )

    def _require_few_under_way(self, arrivals: Arrivals) -> None:
        for instants_s in self._instants_of_replicates(arrivals):
            # With callers more may wait; those that wait are threads too, but nothing else.
            most = max(
                number + 1 - bisect_left(instants_s, at_s - self.horizon_s) for number, at_s in enumerate(instants_s)
            )
            if most > _MOST_UNDER_WAY:
                raise ConfigurationError(
                    f"arrivals: at {arrivals.rate_per_s:g}/s up to {most} queries are under way at once, each observed "
                    f"for up to {self.horizon_s:g} s, and the wall clock has room for {_MOST_UNDER_WAY}; lower the "
                    "rates, decision_timeout_s or horizon_factor, or use virtual time"
                )


@dataclass(frozen=True)
class TracedLoadDesign(CrowdsDesign[NamedRule]):
    """What a load study on traces runs; the fields are the parameters of `load_on_traces`.

    Raises: ConfigurationError for a value that cannot be used, by name.
    """

    recorded: Recorded
    rules: tuple[NamedRule, ...]
    decision_timeouts_s: tuple[float, ...]
    slots: tuple[int | None, ...]
    queue_policies: tuple[str, ...]
    behaviour: ServerBehaviour
    brownout: Fault | None = None

    def __post_init__(self) -> None:
        for name, levels in zip(("decision_timeout_s", "slots", "queue_policy"), self.factors[:3], strict=True):
            if not levels or len(set(levels)) < len(levels):
                raise ConfigurationError(f"{name} must have one or more values, each once, not {list(levels)}")
        self.require_crowds(_MOST_TRACED_QUERIES)
        for count in self.slots:
            if count is not None:
                require_count("slots", count, 1, 1_000_000)
        for policy in self.queue_policies:
            if policy not in POLICIES:
                raise ConfigurationError(f"queue policy must be one of {', '.join(POLICIES)}, not {policy!r}")
        fault = self.brownout
        if fault is not None and (fault.kind != "brownout" or fault.role != "*" or fault.probability != 1):
            raise ConfigurationError(
                f"brownout: {fault} is more than a trace can say of; write brownout=FACTOR@START-END, or use run_load"
            )

    @property
    def factors(self) -> tuple[Sequence[float], Sequence[int | None], Sequence[str], Sequence[NamedRule]]:
        """The levels of what is varied beside the load."""
        return self.decision_timeouts_s, self.slots, self.queue_policies, self.rules

    def design(self) -> dict[str, Any]:
        """Return everything that determines the queries but the traces, as JSON."""
        return self.crowds_json() | {
            "recorded_runs": len(self.recorded.shapes),
            "in_order": self.recorded.in_order,
            "alternatives": [{"name": each.alternative, "options": json.loads(each.options)} for each in self.rules],
            "decision_timeout_s": list(self.decision_timeouts_s),
            "slots": list(self.slots),
            "queue_policy": list(self.queue_policies),
            "server_behaviour": self.behaviour.name,
            "warm_up_s": self.warm_up_s,
            "brownout": None if self.brownout is None else str(self.brownout),
        }

    @property
    def beyond_json(self) -> str:
        """The recorded runs."""
        return repr(self.recorded.shapes)

    @property
    def pace(self) -> Pace | None:
        """When the server is slower; None for never."""
        fault = self.brownout
        if fault is None or fault.factor is None or fault.window_s is None:
            return None
        return Pace(fault.factor, *fault.window_s)


def require_count(name: str, value: int, least: int, most: int) -> None:
    """Require a whole number in a range. Raises: ConfigurationError naming the value."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{name} must be a whole number between {least} and {most}, not {value!r}")
