"""The bench on which a user's graph is examined run by run: linted, or cut at every instant."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.async_form import on_event_loop
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.own_graph import require_whole_budget
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.systems.kinds import workload_kind

KILL: Final = "kill"
"""Stands where an alternative stands, for a process that is killed."""

# A node's name may have a plus sign.
_AND: Final = " + "


@dataclass(frozen=True)
class Trial:
    """One run to measure.

    alternative: as `parse_alternatives` takes it, or `KILL`. decision_timeout_s: instant of the deadline or the kill,
    in virtual seconds; infinite for a run that is not cut. fault: what strikes its requests; several are joined by " +
    ". awaited: whether its caller is on the event loop that the graph runs on; else as `compare` has it. schedule:
    draws another order of threads and tasks that are ready; None for first come, first served. is_control: whether time
    and latencies are others, which tells what of an answer depends on them.
    """

    alternative: str
    decision_timeout_s: float
    question_id: str
    fault: str = "none"
    awaited: bool = False
    schedule: int | None = None
    is_control: bool = False

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
        return dataclasses.replace(self, decision_timeout_s=math.inf)

    @property
    def is_cut(self) -> bool:
        """Whether a deadline or a kill ends it."""
        return math.isfinite(self.decision_timeout_s)

    @property
    def is_kill(self) -> bool:
        """Whether the process is killed, and no deadline ends the run."""
        return self.alternative == KILL


class Bench:
    """A user's graph on simulated services, in this process and in virtual time, by the names that `own_graph` gave."""

    def __init__(self, workload: str, corpus: str) -> None:
        self.workload, self.corpus, self.settings = workload, corpus, Settings()
        self.kind = workload_kind(workload)
        self.system = SimulatedSystem(self.settings, kind=workload, corpus=corpus)

    def parse(self, alternatives: str) -> tuple[Alternative, ...]:
        """Return the alternatives as the graph can be run under them.

        Raises: ConfigurationError for one that a user's graph cannot have.
        """
        found = parse_alternatives(alternatives, budgeted_retries=self.settings.agents.max_retries)
        require_whole_budget(found)
        return tuple(map(on_event_loop, found)) if self.kind.async_only else found

    def close(self) -> None:
        """Close the simulated services."""
        self.system.close()
