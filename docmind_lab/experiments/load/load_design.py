"""The design of a load study: loads × replicates × alternatives, and the crowds that follow.

Loads are open arrival processes: they say when queries arrive, none of which waits for the one before it.

    Poisson(0.5).instants(200, seed=7)          # seconds, the first one after its gap
    Constant(0.5)                               # one every 2 s

A closed source, which sends its next query when the last one is answered, goes easy on a system that is slow:
Schroeder, Wierman and Harchol-Balter, "Open versus closed: a cautionary tale", NSDI 2006.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Final

from docmind_lab.alternatives import Alternative
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_count, require_number
from docmind_lab.core.randomness import keyed_random, keyed_uniform
from docmind_lab.experiments.comparison.comparison import Comparison, study_id_of
from docmind_lab.experiments.load.crowd import Query
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.questions import load_questions


@dataclass(frozen=True)
class _Steady:
    """Arrivals at one rate, the average number of queries a second.

    Raises: ConfigurationError unless it is finite and above 0.
    """

    rate_per_s: float

    def __post_init__(self) -> None:
        require_number("rate_per_s", self.rate_per_s, "a finite number above 0", above=0, remedy="try 0.5")


@dataclass(frozen=True)
class Poisson(_Steady):
    """Independent arrivals, with exponential gaps of mean 1 / rate.

    A seed's gaps at two rates are the same numbers, scaled, so that a curve over rates is not one of luck.
    """

    kind: ClassVar[str] = "poisson"

    def instants(self, count: int, seed: int) -> tuple[float, ...]:
        """Return the instants of the first arrivals, in order, seconds since the start; a seed has the same ones."""
        gaps = (-math.log1p(-keyed_uniform(seed, "arrival", number)) / self.rate_per_s for number in range(count))
        return tuple(accumulate(gaps))


@dataclass(frozen=True)
class Constant(_Steady):
    """One arrival every 1 / rate seconds, the first at 0."""

    kind: ClassVar[str] = "constant"

    def instants(self, count: int, seed: int) -> tuple[float, ...]:
        """Return the instants of the first arrivals, as `Poisson.instants` does; the seed changes nothing."""
        return tuple(number / self.rate_per_s for number in range(count))


Arrivals = Poisson | Constant
"""An open arrival process; the two are interchangeable with each other."""


def processes_of(arrivals: Iterable[float | Arrivals]) -> tuple[Arrivals, ...]:
    """Return the arrival processes; a rate stands for a Poisson process."""
    return tuple(Poisson(each) if isinstance(each, int | float) else each for each in arrivals)


# Each query under way is some threads of this process, and a crowd's rows are in memory until it ends.
_MOST_QUERIES: Final = 2_000
_MOST_REPLICATES: Final = 1_000


@dataclass(frozen=True)
class LoadCell:
    """One crowd: a load and an alternative, in one replicate.

    seed: of the replicate, the same at every load and under every alternative: common random numbers.
    """

    id: str
    arrivals: Arrivals
    replicate: int
    seed: int
    alternative: Alternative


@dataclass(frozen=True, kw_only=True)
class LoadDesign(Comparison):
    """What a load study runs: a comparison whose runs arrive. `run_load` makes it.

    callers: queries that the system takes at once; None for no limit. Queries scheduled before `warm_up_s` load the
    provider and are not counted; None is the horizon, from when on the provider has abandoned work of every age. Those
    of the last decision timeout are not counted either, since fewer and fewer arrive behind them.

    Raises: ConfigurationError for a value that cannot be used, by name.
    """

    arrivals: tuple[Arrivals, ...]
    queries: int = 200
    replicates: int = 8
    callers: int | None = None
    warm_up_s: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("queries", self.queries, 2, _MOST_QUERIES)
        require_count("replicates", self.replicates, 1, _MOST_REPLICATES)
        if self.callers is not None:
            require_count("callers", self.callers, 1, _MOST_QUERIES)
        if self.warm_up_s is not None:
            require_number("warm_up_s", self.warm_up_s, "0 or more seconds, or None for the horizon", least=0)
        if not self.arrivals:
            raise ConfigurationError("arrivals is empty; give at least one rate, such as 0.5 queries a second")
        loads = [(each.kind, each.rate_per_s) for each in self.arrivals]
        for kind, rate_per_s in loads:
            if loads.count((kind, rate_per_s)) > 1:
                raise ConfigurationError(f"arrivals has {kind} at {rate_per_s:g}/s twice; give each load once")
        for arrivals in self.arrivals:
            self._require_window(arrivals)

    def design(self) -> dict[str, Any]:
        """Return everything that determines the queries, as JSON."""
        of_runs = super().design()
        names = ["alternatives", "latency_profile", "decision_timeout_s", "stops_on_disconnect", "client_retries"]
        names += ["router_injection", "seed", "horizon_factor"]
        # Only where there are some, so that the ids of other studies stay what they were.
        names += ["fault"] if self.faults else []
        names += ["server_behaviour"] if "server_behaviour" in of_runs else []
        return {name: of_runs[name] for name in names} | {
            "arrivals": [{"kind": each.kind, "rate_per_s": each.rate_per_s} for each in self.arrivals],
            "queries": self.queries,
            "replicates": self.replicates,
            "callers": self.callers,
            "warm_up_s": self.window_s(0.0)[0],
            "corpus": HANDBOOK,
        }

    @functools.cached_property
    def study_id(self) -> str:
        """Id derived from the design: equal designs have equal ids."""
        return study_id_of("load", self.design())

    @property
    def total_queries(self) -> int:
        """Number of queries of all crowds together."""
        return self.queries * self.replicates * len(self.arrivals) * len(self.alternatives)

    def cells(self) -> Iterator[LoadCell]:
        """Yield every crowd, the highest load first, and all alternatives of a load and replicate together.

        It takes longest, and side by side all are done sooner when the longest does not come last.
        """
        for load, arrivals in sorted(enumerate(self.arrivals), key=lambda each: -each[1].rate_per_s):
            for replicate in range(self.replicates):
                for number, alternative in enumerate(self.alternatives):
                    seed = self._replicate_seed(replicate)
                    yield LoadCell(f"{load}-{replicate}-{number}", arrivals, replicate, seed, alternative)

    def queries_of(self, cell: LoadCell) -> tuple[Query, ...]:
        """Return the queries of a crowd, each with its instant, in order."""
        pool = sorted(load_questions(), key=lambda question: keyed_uniform(cell.seed, "question", question.id))
        return tuple(
            Query(
                self.order(
                    cell.alternative,
                    keyed_random(cell.seed, "query", number).getrandbits(48),
                    pool[number % len(pool)],
                    f"{self.study_id}-{cell.id}-{number:04}",
                ),
                at_s,
            )
            for number, at_s in enumerate(cell.arrivals.instants(self.queries, cell.seed))
        )

    def window_s(self, last_s: float) -> tuple[float, float]:
        """Return the instants between which queries are counted. last_s: when the last query arrives."""
        from_s = self.horizon_s if self.warm_up_s is None else self.warm_up_s
        return from_s, last_s - self.decision_timeout_s

    def _require_window(self, arrivals: Arrivals) -> None:
        for seed in map(self._replicate_seed, range(self.replicates)):
            instants = arrivals.instants(self.queries, seed)
            from_s, until_s = self.window_s(last_s := instants[-1])
            if any(from_s <= each < until_s for each in instants):
                continue
            timeout_s = self.decision_timeout_s
            needed = math.ceil(2 * arrivals.rate_per_s * (from_s + timeout_s))
            raise ConfigurationError(
                f"queries: {self.queries} at {arrivals.rate_per_s:g}/s arrive within {last_s:.0f} s, and none is "
                f"counted: the first {from_s:g} s are warm-up and the last {timeout_s:g} s meet less and less load; "
                f"take {needed} queries or more, or a shorter warm_up_s"
            )

    def _replicate_seed(self, replicate: int) -> int:
        return keyed_random(self.seed, "replicate", replicate).getrandbits(48)
