"""What lint and crash test share: the graph that is examined, its trials, and the bench that carries them out.

A trial is one run. A bench carries out trials of one graph, one after the other, on simulated services in virtual time.
What a trial shows is judged by each of the two in its own way.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives, require_no_roles
from docmind_lab.alternatives.async_form import on_event_loop
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.own_graph import graph_of, own_names
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.world_options import World
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.own import OwnGraph, graph_named
from docmind_lab.systems.system_catalogue import Graph, system_of
from docmind_lab.systems.workload_by_name import workload_kind

KILL: Final = "kill"
"""Stands where an alternative stands, for a process that is killed."""

# A node's name may have a plus sign.
_AND: Final = " + "


@dataclass(frozen=True)
class Trial:
    """One run to measure.

    alternative: as `parse_alternatives` takes it, or `KILL`. decision_timeout_s: instant of the deadline or the kill,
    in virtual seconds; infinite for a run that is not cut. fault: what strikes its requests; several are joined by " +
    ". awaited: whether its caller is on the event loop that the graph runs on; else as `compare` has it. is_control:
    whether time and latencies are others, which tells what of an answer depends on them. repairs: whether the thread is
    mended after the cut, before anybody goes on with it.
    """

    alternative: str
    decision_timeout_s: float
    question_id: str
    fault: str = "none"
    awaited: bool = False
    is_control: bool = False
    repairs: bool = False

    @property
    def called(self) -> str:
        """The alternative, and how it is called if not as `compare` calls it."""
        return f"{self.alternative} awaited (ainvoke)" if self.awaited else self.alternative

    @property
    def faults(self) -> list[str]:
        """The faults, one by one."""
        return [] if self.fault == "none" else self.fault.split(_AND)

    @property
    def undisturbed(self) -> Trial:
        """The same run, not cut: what it is held against."""
        return dataclasses.replace(self, decision_timeout_s=math.inf, repairs=False)

    @property
    def is_cut(self) -> bool:
        """Whether a deadline or a kill ends it."""
        return math.isfinite(self.decision_timeout_s)

    @property
    def is_kill(self) -> bool:
        """Whether the process is killed, and no deadline ends the run."""
        return self.alternative == KILL


@dataclass(frozen=True)
class Examined:
    """A graph to examine in virtual time, and what it meets.

    latencies: name of the latency profile. endpoints: file with simulated endpoints of other services.
    """

    graph: Graph
    latencies: str = "typical"
    endpoints: str | os.PathLike[str] | None = None

    @classmethod
    def of(cls, system: Any, world: World | None) -> Examined:
        """Return what `doctor` and `crash_test` are asked to examine. system, world: as they take them.

        Raises: ConfigurationError for a system that is no graph and no agent, and for what no examination has.
        """
        graph, world = graph_of(system_of(system)), World() if world is None else world
        if graph.budget is not None or graph.enforced:
            raise ConfigurationError("budget and enforced are for a comparison; leave them out of an examination")
        if dataclasses.replace(world, latencies=None, endpoints=None) != World():
            raise ConfigurationError(
                f"{world!r}: an examination runs in virtual time and has latencies and endpoints alone; leave the rest "
                "out"
            )
        latencies = "typical" if world.latencies is None else world.latencies
        if not isinstance(latencies, str):
            raise ConfigurationError(f"latencies must be the name of a profile here, not {latencies!r}")
        return cls(graph, latencies, world.endpoints)

    @functools.cached_property
    def names(self) -> OwnGraph:
        """The names by which the graph and its inputs are found. Raises: ConfigurationError if they cannot be used."""
        return own_names(self.graph, "simulated", self.endpoints)

    @property
    def called(self) -> str:
        """How the graph was named: its reference, or its own name."""
        graph = self.graph.graph
        return graph if isinstance(graph, str) else str(graph_named(self.names.workload).get_name())


def names_in(written: str | None, default: str) -> list[str]:
    """Return the alternatives that were written, or those of the default. Raises: ConfigurationError for none."""
    names = [name.strip() for name in (default if written is None else written).split(",") if name.strip()]
    if not names:
        raise ConfigurationError(f"alternatives: name at least one, such as {default}")
    return names


class Bench:
    """A user's graph on simulated services, in this process and in virtual time.

    workload, corpus: names of the graph and its inputs, as `own_graph` gave them. profile: of the services' latencies.
    seed: keys every draw.
    """

    def __init__(self, workload: str, corpus: str, *, profile: str, seed: int) -> None:
        self.workload, self.corpus, self.seed, self.settings = workload, corpus, seed, Settings()
        self.kind, self.profile = workload_kind(workload), LatencyProfile.named(profile)
        self.system = SimulatedSystem(self.settings, kind=workload, corpus=corpus)

    def services(self, trial: Trial) -> ServiceOptions:
        """Return the options of the simulated services of a trial."""
        seed = self.seed + trial.is_control
        return ServiceOptions(self.profile, self.faults(trial), seed=seed, endpoints=self.kind.endpoints)

    @staticmethod
    def faults(trial: Trial) -> tuple[Fault, ...]:
        """Return the faults of a trial."""
        return tuple(map(Fault.parse, trial.faults))

    def parse(self, alternatives: str) -> tuple[Alternative, ...]:
        """Return the alternatives as the graph can be run under them.

        Raises: ConfigurationError for one that a user's graph cannot have.
        """
        parsed = parse_alternatives(alternatives, budgeted_retries=self.settings.agents.max_retries)
        require_no_roles(parsed)
        return tuple(map(on_event_loop, parsed)) if self.kind.async_only else parsed

    def close(self) -> None:
        """Close the simulated services."""
        self.system.close()
