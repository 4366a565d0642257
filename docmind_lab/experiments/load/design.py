"""The design of a load study: loads × alternatives × replicates, and the queries that follow from them."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.core.deadlines import require_seconds
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import keyed_random, keyed_uniform
from docmind_lab.experiments.comparison.design import Comparison, alternatives_json, study_id_of
from docmind_lab.experiments.load.arrivals import Arrivals, as_json
from docmind_lab.experiments.load.crowd import Query
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR, horizon_of
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.questions import load_questions

# Each query under way is some threads of this process, and a crowd's rows are in memory until it ends.
_MOST_QUERIES = 2_000
_MOST_REPLICATES = 1_000
# On the wall clock each query under way is some real threads and a connection to the service's log, which takes 100.
_MOST_UNDER_WAY = 100


@dataclass(frozen=True)
class LoadPoint:
    """One crowd: an alternative at a load, in one replicate. Only queries scheduled in its window are counted."""

    id: str
    arrivals: Arrivals
    replicate: int
    queries: tuple[Query, ...]
    window_from_s: float
    window_until_s: float


@dataclass(frozen=True, kw_only=True)
class CrowdsDesign:
    """The part of a load study's design that says which crowds there are, and which of their queries are counted."""

    arrivals: tuple[Arrivals, ...]
    queries: int = 200
    replicates: int = 8
    seed: int = 7
    horizon_factor: float = HORIZON_FACTOR
    warm_up_s: float | None = None

    def counted_from_s(self, timeout_s: float) -> float:
        """Return the instant from which queries are counted, seconds since the crowd began."""
        return horizon_of(timeout_s, self.horizon_factor) if self.warm_up_s is None else self.warm_up_s

    def require_crowds(self, timeouts_s: tuple[float, ...], most_queries: int) -> None:
        """Return if each crowd has queries that are counted. Raises: ConfigurationError naming what cannot be used."""
        require_count("queries", self.queries, 2, most_queries)
        require_count("replicates", self.replicates, 1, _MOST_REPLICATES)
        if not self.horizon_factor > 1:
            raise ConfigurationError(f"horizon_factor must be above 1, not {self.horizon_factor}")
        if self.warm_up_s is not None and not 0 <= self.warm_up_s < math.inf:
            raise ConfigurationError(f"warm_up_s must be 0 or more seconds, or None for the horizon: {self.warm_up_s}")
        for timeout_s in timeouts_s:
            require_seconds("decision timeout", timeout_s)
        if not self.arrivals:
            raise ConfigurationError("arrivals is empty; give at least one rate, such as 0.5 queries a second")
        named = [(each.kind, each.rate_per_s) for each in self.arrivals]
        for each in named:
            if named.count(each) > 1:
                raise ConfigurationError(f"arrivals has {each[0]} at {each[1]:g}/s twice; give each load once")
        for arrivals in self.arrivals:
            seeds = (replicate_seed(self.seed, replicate) for replicate in range(self.replicates))
            last_s = min(arrivals.instants(self.queries, seed)[-1] for seed in seeds)
            for timeout_s in timeouts_s:
                self._require_window(arrivals, timeout_s, last_s)

    def _require_window(self, arrivals: Arrivals, timeout_s: float, last_s: float) -> None:
        first_s = self.counted_from_s(timeout_s)
        if last_s - timeout_s <= first_s:
            needed = math.ceil(2 * arrivals.rate_per_s * (first_s + timeout_s))
            raise ConfigurationError(
                f"queries: {self.queries} at {arrivals.rate_per_s:g}/s arrive within {last_s:.0f} s, and none is "
                f"counted: the first {first_s:g} s are warm-up and the last {timeout_s:g} s meet less and less load; "
                f"take {needed} queries or more, or a shorter warm_up_s"
            )


@dataclass(frozen=True)
class LoadDesign(CrowdsDesign, Comparison):
    """What a load study runs: a comparison whose runs arrive. `run_load` makes it from its arguments.

    Queries scheduled before `warm_up_s` load the provider and are not counted; None is the horizon, from when on the
    provider has abandoned work of every age. Those of the last decision timeout are not counted either, since fewer and
    fewer arrive behind them. callers: queries that the system takes at once; None for no limit. On the wall clock no
    more than a hundred queries may be under way at once.

    Raises: ConfigurationError for a value that cannot be used, by name.
    """

    callers: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.callers is not None:
            require_count("callers", self.callers, 1, _MOST_QUERIES)
        self.require_crowds((self.decision_timeout_s,), _MOST_QUERIES)
        if self.clock == "wall":
            for point in self.arrivals:
                self._require_few_under_way(point)

    @property
    def total_queries(self) -> int:
        """Number of queries of all crowds together."""
        return self.queries * self.replicates * len(self.arrivals) * len(self.alternatives)

    def design(self) -> dict[str, Any]:
        """Return everything that determines the queries, as JSON."""
        clock = {"clock": self.clock} if self.clock != "virtual" else {}
        return (
            clock
            | ({"fault": self.fault} if self.faults else {})
            | {
                "arrivals": [as_json(each) for each in self.arrivals],
                "alternatives": alternatives_json(self.alternatives),
                "latency_profile": self.profile.to_dict(),
                "decision_timeout_s": self.decision_timeout_s,
                "queries": self.queries,
                "replicates": self.replicates,
                "seed": self.seed,
                "callers": self.callers,
                "stops_on_disconnect": self.stops_on_disconnect,
                "client_retries": self.client_retries,
                "horizon_factor": self.horizon_factor,
                "warm_up_s": self.counted_from_s(self.decision_timeout_s),
                "router_injection": self.router_injection,
                "corpus": HANDBOOK,
            }
        )

    @functools.cached_property
    def study_id(self) -> str:
        """Id derived from the design: equal designs have equal ids."""
        return study_id_of("load", self.design())

    def points(self) -> Iterator[LoadPoint]:
        """Yield every crowd, the highest load first, and all alternatives of a load and replicate together.

        It takes longest, and side by side all are done sooner when the longest does not come last.
        """
        by_load = sorted(enumerate(self.arrivals), key=lambda each: -each[1].rate_per_s)
        for load, arrivals in by_load:
            for replicate in range(self.replicates):
                for number, alternative in enumerate(self.alternatives):
                    yield self._point(f"{load}-{replicate}-{number}", arrivals, replicate, alternative)

    def _point(self, point_id: str, arrivals: Arrivals, replicate: int, alternative: Alternative) -> LoadPoint:
        # The same seed at every load and under every alternative: common random numbers.
        seed = replicate_seed(self.seed, replicate)
        instants_s = arrivals.instants(self.queries, seed)
        asked = sorted(load_questions(), key=lambda question: keyed_uniform(seed, "question", question.id))
        queries = tuple(
            Query(
                self.order(
                    alternative,
                    keyed_random(seed, "query", number).getrandbits(48),
                    asked[number % len(asked)],
                    f"{self.study_id}-{point_id}-{number:04}",
                ),
                at_s,
            )
            for number, at_s in enumerate(instants_s)
        )
        window_s = self.counted_from_s(self.decision_timeout_s), instants_s[-1] - self.decision_timeout_s
        return LoadPoint(point_id, arrivals, replicate, queries, *window_s)

    def _require_few_under_way(self, arrivals: Arrivals) -> None:
        for replicate in range(self.replicates):
            instants_s = arrivals.instants(self.queries, replicate_seed(self.seed, replicate))
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


def replicate_seed(seed: int, replicate: int) -> int:
    """Return the seed of one replicate of a study: the same at every load, under every alternative."""
    return keyed_random(seed, "replicate", replicate).getrandbits(48)


def require_count(name: str, value: int, least: int, most: int) -> None:
    """Require a whole number in a range. Raises: ConfigurationError naming the value."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigurationError(f"{name} must be a whole number between {least} and {most}, not {value!r}")
