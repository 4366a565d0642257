"""A program as a workload kind, and its questions."""

from __future__ import annotations

import functools
import shlex
import threading
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Self

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN
from docmind_lab.docmind.graphs.node_modes import NodeMode
from docmind_lab.docmind.retrieval import Question
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import LogClient, ServiceProcess
from docmind_lab.workloads.agents.agent import Agent
from docmind_lab.workloads.agents.graph import agent_graph
from docmind_lab.workloads.agents.inputs import as_question
from docmind_lab.workloads.kinds import PROGRAM_PREFIX, Defaults, Surroundings, WorkloadKind
from docmind_lab.workloads.own.inputs import GraphInput, Inputs, fingerprint, read_inputs
from docmind_lab.workloads.own.kind import OwnGraph
from docmind_lab.workloads.programs import process
from docmind_lab.workloads.programs.enforcing import OnProgram, notes_on, refusal_of
from docmind_lab.workloads.programs.program import ROLE, Program, ProgramRun, RunningProgram
from docmind_lab.workloads.retries import own_retries

# Some programs import a framework for seconds before their first request.
DEFAULTS = {"wall": Defaults(10.0, 5, "typical/6"), "virtual": Defaults(10.0, 5, "typical/6")}

_inputs: dict[str, tuple[GraphInput, ...]] = {}
# A command line may hold folders and keys, which no manifest should: programs are found by a name without them.
_programs: dict[str, Program] = {}


class ProgramServices(ServiceProcess):
    """The simulated services, with the programs that ask them: these are ended first."""

    def __exit__(self, *exc_info: object) -> None:
        process.kill_all()
        super().__exit__(*exc_info)


class ProgramWorkload:
    """A program as a workload. `answer_score` is the share of an input's gold texts that its answer states."""

    def __init__(self, name: str, program: Program, addresses: Any) -> None:
        self.name, self.program, self._root = name, program, addresses.log_url.removesuffix("/log")
        self._log = LogClient(addresses.log_url)
        self._running: dict[str, RunningProgram] = {}
        self._ended: dict[str, RunningProgram] = {}
        self._has_asked = False
        self._lock = threading.Lock()

    def runnable(self, recorder: Recorder, question: Question) -> Any:
        """Return the run of the program, which has not begun."""

        def count_requests() -> int:
            return len(self._log.rows(recorder.run_id))

        def begun(running: RunningProgram) -> None:
            with self._lock:
                self._running[recorder.run_id] = running

        return ProgramRun(self.program, recorder, self._root, count_requests, begun)

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the question and further keys."""
        assert isinstance(question, GraphInput), "a program is asked its own questions"
        return dict(question.given)

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return NaN for recall, and the share of gold facts answered.

        Raises: ConfigurationError while no run has asked the services anything, for one that answered or failed: it
        says nothing of a model behind it.
        """
        with self._lock:
            ended, self._ended = list(self._ended.values()), {}
            self._has_asked = self._has_asked or any(running.requests for running in ended)
            if not self._has_asked and outcome.outcome in ("answered", "failed"):
                raise ConfigurationError(self._never_asked(outcome))
        stated = outcome.answer.casefold()
        gold = question.gold_facts
        return NAN, sum(fact.casefold() in stated for fact in gold) / len(gold) if gold else NAN

    def _never_asked(self, outcome: Outcome) -> str:
        shown = shlex.join(self.program.command)
        if outcome.outcome == "failed":
            return f"command {shown}: it ended before it asked a model: {outcome.error}"
        return (
            f"command {shown}: it answered, and no request of it reached the simulated services; have its client read "
            "OPENAI_BASE_URL (or ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL, OLLAMA_HOST)"
        )

    def in_node_mode(self, node_mode: NodeMode) -> Self:
        """Return this workload. Raises: ConfigurationError for any mode but "own"."""
        if node_mode != "own":
            raise ConfigurationError(f"node_mode {node_mode!r}: a program has no nodes; leave it out")
        return self

    def forget(self, run_id: str) -> None:
        """End what is left of a run's processes, and remove its files."""
        with self._lock:
            running = self._running.pop(run_id, None)
        if running is not None:
            running.close()
            self._ended[run_id] = running

    def close(self) -> None:
        """End every process."""
        for run_id in list(self._running):
            self.forget(run_id)
        self._log.close()


def own_program(command: str | Sequence[str], inputs: Inputs) -> OwnGraph:
    """Check a command and its questions, and register them under names by which comparisons find them.

    Raises: ConfigurationError for a command that cannot be started, and for questions that cannot be used.
    """
    program = Program.of(command)
    # Questions have the form of an agent's, whose function takes any keyword.
    name = _register(program)
    asking = Agent(name, lambda question, **keywords: question, is_async=False)
    asked = read_inputs(agent_graph(asking), inputs, convert=functools.partial(as_question, asking))
    corpus = f"inputs-{fingerprint(asked)}"
    _inputs[corpus] = asked
    return OwnGraph(f"{PROGRAM_PREFIX}{name}", corpus, len(asked))


def _register(program: Program) -> str:
    """Register a program and return its name, such as "node agent.mjs", with a number if another one has it already."""
    shown = " ".join(word for word in (PurePath(word).name for word in program.command[:2]) if word)
    number = 1
    while True:
        name = shown if number == 1 else f"{shown} ({number})"
        if _programs.setdefault(name, program) == program:
            return name
        number += 1


def program_kind(workload: str) -> WorkloadKind:
    """Return the kind for a name that `own_program` gave in this process. Raises: ConfigurationError for another."""
    name = workload.removeprefix(PROGRAM_PREFIX)
    if name not in _programs:
        raise ConfigurationError(
            f"program {name!r} is not known here; name its command: compare(command=..., inputs=...)"
        )
    program = _programs[name]

    def build(around: Surroundings) -> ProgramWorkload:
        return ProgramWorkload(name, program, around.addresses).in_node_mode(around.node_mode)

    return WorkloadKind(
        name=name,
        title=name,
        asked="questions",
        cases=_cases,
        build=build,
        defaults=DEFAULTS,  # type: ignore[arg-type]
        roles=(ROLE,),
        in_this_process=True,
        retries=own_retries,
        serve=ProgramServices,
        refusal=functools.partial(refusal_of, program),
        carried_out_by=_carried_out_by,
        notes=notes_on(program),
    )


def _carried_out_by(alternative: Alternative) -> Any:
    return OnProgram(alternative)


def _cases(corpus: str) -> tuple[GraphInput, ...]:
    if corpus not in _inputs:
        raise ConfigurationError("a program is asked its own questions: compare(command=..., inputs=...)")
    return _inputs[corpus]
