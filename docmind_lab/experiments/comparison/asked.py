"""What `compare` is told to measure, as its keywords say it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.budgets import Budget
from docmind_lab.core.charges import CpuCharge
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.services.faults import Fault
from docmind_lab.workloads.own import Inputs, Services

UNSAID_SEED = 7
"""What `compare` takes when no seed is named."""

UNSAID_WORKLOAD = "supervisor"
UNSAID_CORPUS = "language_reference"


@dataclass(frozen=True)
class Asked:
    """The keywords of `compare` that say what is measured; None where it is left open, and then something else says it.

    Nothing is checked here: what can be asked depends on whether it is of a workload, a user's graph or a recording.
    """

    decision_timeout_s: float | None = None
    runs: int | None = None
    seed: int = UNSAID_SEED
    alternatives: Sequence[str | Alternative] | str | None = None
    profile: str | LatencyProfile | None = None
    fault: Sequence[str | Fault] | str = ()
    stops_on_disconnect: bool = True
    retries: int | None = None
    router_injection: bool | None = None
    budget: Budget | None = None
    workload: str = UNSAID_WORKLOAD
    documents: str | os.PathLike[str] = UNSAID_CORPUS
    questions: str | os.PathLike[str] | None = None
    graph: Any = None
    inputs: Inputs | None = None
    deadline_key: str = DEADLINE_KEY
    services: Services = "simulated"
    clock: ClockName | None = None
    side_by_side: int | None = None
    cpu_charge: CpuCharge = 0.0
    model_variation: float = 0.0

    @property
    def is_of_own_graph(self) -> bool:
        """Whether any of it is about a user's graph."""
        return self.graph is not None or self.inputs is not None or self.services != "simulated"

    @property
    def names_system(self) -> dict[str, bool]:
        """Keyword that names one of the lab's own systems, or what it searches and is asked → whether it was given."""
        return {"workload": self.workload != UNSAID_WORKLOAD} | self.names_documents

    @property
    def names_documents(self) -> dict[str, bool]:
        """Keyword that names what is searched and asked → whether it was given."""
        return {"documents": self.documents != UNSAID_CORPUS, "questions": self.questions is not None}
