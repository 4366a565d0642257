"""Run a research as a function, without an alternative: only its own limits end it.

report = research(task, system, folder="results")            # system: ResearchSystem, on either clock
report = await research_async(task, system)

with SimulatedResearch(ResearchLimits(max_time_minutes=120)) as lab:      # brings its own services
    report = lab.research(load_tasks()[0])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

import pandas as pd
from langchain_core.messages import HumanMessage

from docmind_lab.core.settings import Settings
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.network.recorder import recording
from docmind_lab.services.faults import Fault
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import Library, handbook
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.research.counterfactual import past_the_stop
from docmind_lab.systems.research.research_report import ResearchReport, report_of
from docmind_lab.systems.research.research_system import ResearchSystem, recorder_of
from docmind_lab.systems.research.sources import SourceSpec, load_sources
from docmind_lab.systems.research.tasks import ResearchLimits, ResearchTask, as_task
from docmind_lab.virtual_time import VirtualClock

Result = TypeVar("Result")
Folder = str | os.PathLike[str] | None

# Encoding and storing the sources is one long computation, which waits for nothing in virtual time.
_BUILD_STALL_AFTER_S = 600.0
_DAY_S = 86_400.0


def research(
    question: Question,
    system: ResearchSystem,
    *,
    folder: Folder = None,
    limits: ResearchLimits | None = None,
    seed: int = 0,
) -> ResearchReport:
    """Research a task until its sources are saturated or a limit is reached, and return the report.

    folder: where results are flushed after each query and completions are logged; None for nowhere. limits: in place of
    the system's own. seed: keys the draws of simulated services.

    A model that cannot be had for the findings leaves them out: the report names the error. Raises: ConfigurationError
    for limits that name no source.
    """
    return finish(_research_steps(as_task(question), system, folder, limits, seed))


async def research_async(
    question: Question,
    system: ResearchSystem,
    *,
    folder: Folder = None,
    limits: ResearchLimits | None = None,
    seed: int = 0,
) -> ResearchReport:
    """`research`, as a coroutine. Cancelled, it still writes a completion of each open source to the folder."""
    return await afinish(_research_steps(as_task(question), system, folder, limits, seed))


def _research_steps(
    task: ResearchTask, system: ResearchSystem, folder: Folder, limits: ResearchLimits | None, seed: int
) -> Steps[ResearchReport]:
    ledger = system.ledger(None if folder is None else Path(folder), limits)
    graph = system.configure(system.graph(), ledger, f"research-{task.id}")
    inputs = {"messages": [HumanMessage(task.text, id="question")], "task": task}
    with recording(recorder_of(task, seed)):
        try:
            state = yield Operation(lambda: graph.invoke(inputs), lambda: graph.ainvoke(inputs))
        except Exception as error:
            if ledger.task is None or ledger.items() == ():
                raise
            # What was kept is not thrown away with the findings.
            return report_of(ledger, "", error=type(error).__name__, task=task)
    return report_of(ledger, state["messages"][-1].text, stop_reason=state.get("stop_reason", ""), task=task)


@dataclass
class SimulatedResearch:
    """A research system with its own simulated services, in virtual time: two hours take seconds.

    profile, faults: of the services. stops_on_disconnect: whether they notice that a client has left. Each research has
    a clock that starts at 0. The sources are filled when this is made, which takes a second or two.
    """

    limits: ResearchLimits = field(default_factory=ResearchLimits)
    profile: str | LatencyProfile = "typical"
    faults: Sequence[str] = ()
    seed: int = 0
    corpus: Library = field(default_factory=handbook)
    specs: Sequence[SourceSpec] = field(default_factory=load_sources)
    stops_on_disconnect: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.profile, str):
            self.profile = LatencyProfile.named(self.profile)
        parsed = tuple(Fault.parse(fault) for fault in self.faults)
        self._store = VectorService(self.profile, self.seed, faults=parsed)
        self._llm = OpenAIService(self.profile, parsed, self.seed)
        self.system: ResearchSystem = self.run(
            lambda: ResearchSystem(
                ServiceAddresses.at_port(PORT), Settings(), self.limits, self.corpus, specs=self.specs
            ),
            stall_after_s=_BUILD_STALL_AFTER_S,
        )

    def run(self, work: Callable[[], Result], *, stall_after_s: float = 10.0, horizon_s: float = _DAY_S) -> Result:
        """Run `work()` in virtual time against the services and return its result. horizon_s: limit of its time."""
        door = VirtualDoor(
            llm=self._llm,
            vectors=self._store,
            stops_on_disconnect=self.stops_on_disconnect,
            slots=self._llm.profile.slots,
        )
        clock = VirtualClock(on_entry=[door.open], stall_after_s=stall_after_s, horizon_s=horizon_s)
        return clock.run(work)

    def research(
        self, question: Question, *, folder: Folder = None, limits: ResearchLimits | None = None
    ) -> ResearchReport:
        """Run `research` in virtual time."""
        return self.run(
            lambda: research(question, self.system, folder=folder, limits=limits, seed=self.seed),
            # What is under way when the budget ends is finished, and no call takes a day.
            horizon_s=(limits or self.limits).budget_s + _DAY_S,
        )

    def past_the_stop(self, report: ResearchReport, *, further_queries: int = 3) -> pd.DataFrame:
        """Run `past_the_stop` in virtual time: what each source would have given after its stop."""
        return self.run(
            lambda: past_the_stop(report, self.system, further_queries=further_queries, seed=self.seed),
            horizon_s=self.limits.budget_s + _DAY_S,
        )

    def close(self) -> None:
        """Close the clients and the vector store."""
        self.system.close()
        self._store.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
