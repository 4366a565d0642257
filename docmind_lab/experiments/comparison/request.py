"""The description of a comparison that the command line and `compare` build."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.analysis.latency.by_role import ProfileChoice
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.docmind.retrieval.corpus import HANDBOOK
from docmind_lab.experiments.comparison.design import CommonOptions
from docmind_lab.experiments.recordings.live_study import RecordingOptions
from docmind_lab.services.faults import Fault
from docmind_lab.workloads.own import Inputs, Services, StoreMaker

DEFAULT_SEED = 7
DEFAULT_WORKLOAD = "supervisor"


@dataclass(frozen=True)
class CompareRequest(CommonOptions):
    """What to measure, and what to record. The fields are the keywords of `compare`, which documents them.

    None leaves a field open: the workload, the settings or the recording that is replayed settles it. Nothing is
    checked here, because what may be asked depends on those too; `resolve` checks it.
    """

    decision_timeout_s: float | None = None
    runs: int | None = None
    seed: int = DEFAULT_SEED
    alternatives: Sequence[str | Alternative] | str | None = None
    profile: ProfileChoice | Sequence[str] | None = None
    fault: Sequence[str | Fault] | str = ()
    retries: int | None = None
    router_injection: bool | None = None
    budget: Budget | None = None
    workload: str = DEFAULT_WORKLOAD
    documents: str | os.PathLike[str] = HANDBOOK
    questions: str | os.PathLike[str] | None = None
    graph: Any = None
    agent: Any = None
    command: str | Sequence[str] | None = None
    inputs: Inputs | None = None
    deadline_key: str = DEADLINE_KEY
    context: Any = None
    config: Mapping[str, Any] | None = None
    store: str | StoreMaker | None = None
    resume: Sequence[Any] = ()
    endpoints: str | os.PathLike[str] | None = None
    services: Services = "simulated"
    enforced: bool = False
    clock: ClockName | None = None
    side_by_side: int | None = None
    record: str | os.PathLike[str] | None = None
    record_text: bool = False
    replay: str | os.PathLike[str] | None = None
    max_requests: int | None = None
    max_tokens: int | None = None

    @property
    def recording(self) -> RecordingOptions:
        """Options of recording, replay and caps. Raises: ConfigurationError if they do not go together."""
        return RecordingOptions.of(self.record, self.record_text, self.replay, self.max_requests, self.max_tokens)

    @property
    def is_of_own_graph(self) -> bool:
        """Whether the request is about a user's own graph, agent or program."""
        named = (
            self.graph,
            self.agent,
            self.command,
            self.inputs,
            self.context,
            self.config,
            self.store,
            self.endpoints,
        )
        return (
            any(each is not None for each in named)
            or self.services != "simulated"
            or self.enforced
            or bool(self.resume)
        )

    @property
    def names_own_graph(self) -> bool:
        """Whether the request names a graph or an agent of the user's own."""
        return self.graph is not None or self.agent is not None

    @property
    def names_system(self) -> dict[str, bool]:
        """For each keyword that names a system of the lab, its documents or questions: whether it was given."""
        return {"workload": self.workload != DEFAULT_WORKLOAD} | self.names_documents

    @property
    def names_documents(self) -> dict[str, bool]:
        """For each keyword that names documents or questions: whether it was given."""
        return {"documents": self.documents != HANDBOOK, "questions": self.questions is not None}
