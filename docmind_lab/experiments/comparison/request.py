"""The description of a comparison that `compare` makes of its keywords, which are documented here."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from docmind_lab.alternatives import Alternative
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.comparison.design import CommonOptions
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.recordings.caps import Caps
from docmind_lab.experiments.recordings.live_study import RecordingOptions
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import ProfileChoice
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.own import Inputs, Services, StoreMaker

DEFAULT_SEED = 7
DEFAULT_WORKLOAD = "supervisor"
OF_A_GRAPH = ("deadline_key", "enforced", "context", "config", "store", "resume")
"""Fields that only a LangGraph graph has."""


@dataclass(frozen=True)
class CompareRequest(CommonOptions):
    """What to measure, and what to record: the keywords of `compare`.

    None leaves a field open: the workload, the settings or the recording that is replayed settles it. Nothing is
    checked here, because what may be asked depends on those too; `resolve` checks it.

    Args:
        decision_timeout_s: The budget of each run, in seconds. Defaults to 20, on the wall clock to 2.
        runs: How many questions each alternative is asked. Defaults to 40, on the wall clock to 8.
        seed: Keys the questions, latencies and faults.
        alternatives: Levels, letters ("A"), variants ("A:per_read", "B:naive") or instances. None means all.
        profile: A latency profile or its name. Defaults to "heavy_tail/3", on the wall clock to "typical/6". Or
            profiles by role, such as {"*": "typical", "judge": "judge.json"}; of your own graph, roles are its nodes.
        fault: One fault or several, as `services.faults` writes them.
        stops_on_disconnect: Whether the model server stops generating when its client leaves.
        server_behaviour: What it does then, in more words: the name of a profile that ships with the package, such as
            "llama-cpp-2026.10", or a .json file that `docmind-lab probe server` wrote.
        retries: Tries after the first, of whoever retries under an alternative. None leaves the openai client its 2.
        router_injection: Whether retrieval asks a router engine first, as in ADR-056. None means as the settings say.
        budget: Tokens, calls and cost of each run. It is measured everywhere, and enforced where the deadline is
            propagated. Its `time_s` is the decision timeout by another name.
        workload: The system under the deadline, one of `workloads.WORKLOADS`. The defaults here are those of
            "supervisor", which is DocMind itself.
        documents: "handbook", which comes with twelve questions, or a folder of .md and .txt files.
        questions: A file of your own questions: .jsonl, .csv or .json. None means those that come with the documents;
            a folder's do not come with any.
        graph: A compiled LangGraph graph, a function that makes one, or a reference, which worker processes can find
            too: "module:attribute", "file.py:attribute" or "langgraph.json:name". It takes the place of a workload.
        agent: A function of a question, `async` or not, an agent of another framework, or a reference to one. It takes
            the place of a workload.
        command: A program and its arguments, which reads a question from standard input and writes its answer to
            standard output, on the wall clock. It takes the place of a workload.
        inputs: The graph's inputs, or the agent's questions, as a list, or a file with one in each line.
        deadline_key: The key of the graph's input that takes the deadline, if it has one.
        context: Context of the graph's runs, as its `context_schema` has it.
        config: Configuration of its runs, or what stands under "configurable" there.
        store: A function that makes the store of one run, or a reference to it. None means the graph's own, or else an
            empty one in memory, such as LangGraph's server gives to every graph.
        resume: What the graph's interrupts are answered with, in their order, at once and within the budget.
        endpoints: A file with simulated endpoints of other services that the graph calls, beside the ready ones.
        services: "simulated": simulated services answer whatever host the graph names, no key is used and nothing is
            spent. "own": requests go where the graph's code sends them, on the wall clock only.
        enforced: Whether your graph runs through `enforce`, as it would in production, under each alternative.
        clock: "virtual": the same stack in simulated time, without waiting, with the same tables every time. "wall":
            real time. None means "wall" if the settings name a live endpoint, else "virtual".
        side_by_side: Runs under way at once on the wall clock; 1 also measures coordination overhead. None means 4,
            or 1 with a live endpoint, which all runs share, or with a graph of your own, whose nodes may block the
            event loop that runs share. Each run has the slots of a profile to itself.
        cpu_charge: CPU seconds that each request to a model or a store costs in virtual time, where Python's own work
            takes no time otherwise. "measured" charges what it took, and tables then differ between repeats.
        model_variation: Share, from 0 to 1, of the simulated model's decisions that go another way than the best:
            wrong hand-overs, searches for a part of the words, answers with less in them. They are drawn by seed.
            With 0, quality is a constant of the question.
        model_under_pressure: What the simulated model does when its prompt says that little time is left, as under the
            policy "aware": "hurries", "panics" or "ignores", with a share of the time: "hurries:0.25". An assumption.
        adoption: Share, from 0 to 1, of the services of the workload "hops" that hold to a deadline that comes with a
            request. Which ones is drawn by seed.
        record: A folder for a recording of the study, on the wall clock.
        record_text: Whether the recording keeps responses and digests of requests.
        replay: The folder of a recording to replay in virtual time. It settles everything but budgets, runs,
            alternatives and retries.
        max_requests: The most model requests on the wall clock. At the first request past it no further run begins,
            and runs that need another request are left out. The study is then not complete; its manifest says why.
        max_tokens: The most tokens of model calls on the wall clock, in the same way.
    """

    decision_timeout_s: float | None = None
    runs: int | None = None
    seed: int = DEFAULT_SEED
    _: KW_ONLY
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
        record, replay = (None if each is None else Path(each) for each in (self.record, self.replay))
        return RecordingOptions(record, self.record_text, replay, Caps(self.max_requests, self.max_tokens))

    @property
    def is_of_own_graph(self) -> bool:
        """Whether the request is about a user's own graph, agent or program."""
        return bool(self.given("graph", "agent", "command", "inputs", "services", "endpoints", *OF_A_GRAPH[1:]))

    @property
    def names_own_graph(self) -> bool:
        """Whether the request names a graph or an agent of the user's own."""
        return self.graph is not None or self.agent is not None

    def given(self, *names: str) -> list[str]:
        """Return those of these fields that are not as they are when left out."""
        defaults = {each.name: each.default for each in fields(self)}

        def is_given(name: str) -> bool:
            value, default = getattr(self, name), defaults[name]
            if default is None:
                return value is not None
            return bool(value) if default == () else bool(value != default)

        return [name for name in names if is_given(name)]


class RunListener(Protocol):
    """Who is told of measured runs when all are done: `docmind_lab.telemetry.Telemetry`."""

    def check(self, settings: Settings) -> None:
        """Return if it can be told. Called before the first run. Raises: ConfigurationError, EndpointRefused."""
        ...

    def tell(self, measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Take the runs and the manifest of their study; never raises."""
        ...


@dataclass(frozen=True, kw_only=True)
class CompareCall(CompareRequest):
    """How the comparison is carried out: the other keywords of `compare`.

    Args:
        workers: Processes in virtual time. None means one on each core, or none for a few runs; 1 means none.
        settings: Settings; those of the environment when left out.
        out: A folder for tables, plots and the summary.
        progress: Called with (runs done, all runs).
        before_sending: Called, before anything is sent, with what a live endpoint is expected to be sent. Whatever it
            raises ends the study.
        telemetry: Where spans and metrics of the runs go when all are done: `docmind_lab.telemetry.Telemetry`.
    """

    workers: int | None = None
    settings: Settings | None = None
    out: str | os.PathLike[str] | None = None
    progress: Progress | None = None
    before_sending: Callable[[str], None] | None = None
    telemetry: RunListener | None = None
