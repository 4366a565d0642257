"""A program as a workload kind, its questions, and the alternatives that it can have.

Those are its deadline in its environment (A), SIGKILL (B), SIGTERM (C), the three of them in turn (E), and its own
timeout (F).
"""

from __future__ import annotations

import functools
import json
import shlex
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Self

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.base import AroundAlternative, Outcome, RunLog, options_json
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import NAN
from docmind_lab.core.settings import DEADLINE_VARIABLE
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import LogClient, ServiceProcess
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.retries import own_retries
from docmind_lab.systems.base.workload_kind import PROGRAM_PREFIX, Defaults, Surroundings, WorkloadKind, left_out
from docmind_lab.systems.own.agents import Agent, agent_graph, as_question
from docmind_lab.systems.own.inputs import (
    GraphInput,
    Inputs,
    inputs_named,
    read_inputs,
    register,
    register_inputs,
    share_of_gold,
)
from docmind_lab.systems.own.own_kind import OwnGraph
from docmind_lab.systems.own.programs.program import (
    ROLE,
    TIMEOUT_VARIABLE,
    TIMEOUT_WORD,
    Program,
    ProgramRun,
    kill_all,
)

# Some programs import a framework for seconds before their first request.
DEFAULTS = {"wall": Defaults(10.0, 5, "typical/6"), "virtual": Defaults(10.0, 5, "typical/6")}

# A command line may hold folders and keys, which no manifest should: programs are found by a name without them.
_programs: dict[str, Program] = {}


class ProgramServices(ServiceProcess):
    """The simulated services, with the programs that ask them: these are ended first."""

    def __exit__(self, *exc_info: object) -> None:
        kill_all()
        super().__exit__(*exc_info)


class ProgramWorkload:
    """A program as a workload. `answer_score` is the share of an input's gold texts that its answer states."""

    def __init__(self, name: str, program: Program, addresses: Any) -> None:
        self.name, self.program, self._root = name, program, addresses.log_url.removesuffix("/log")
        self._log = LogClient(addresses.log_url)
        self._running: dict[str, ProgramRun] = {}
        self._ended: dict[str, ProgramRun] = {}
        self._has_asked = False
        self._lock = threading.Lock()

    def runnable(self, recorder: Recorder, question: Question) -> Any:
        """Return the run of the program, which has not begun."""
        run = ProgramRun(self.program, recorder, self._root, lambda: len(self._log.rows(recorder.run_id)))
        with self._lock:
            self._running[recorder.run_id] = run
        return run

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
        return NAN, share_of_gold(question, outcome.answer)

    def _never_asked(self, outcome: Outcome) -> str:
        words = shlex.join(self.program.command)
        if outcome.outcome == "failed":
            return f"command {words}: it ended before it asked a model: {outcome.error}"
        return (
            f"command {words}: it answered, and no request of it reached the simulated services; have its client read "
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
    label = " ".join(word for word in (PurePath(word).name for word in program.command[:2]) if word)
    name = register(program, label, _programs)
    asking = Agent(name, lambda question, **keywords: question, is_async=False)
    items = read_inputs(agent_graph(asking), inputs, convert=functools.partial(as_question, asking))
    return OwnGraph(f"{PROGRAM_PREFIX}{name}", register_inputs(items), len(items))


def program_kind(workload: str) -> WorkloadKind:
    """Return the kind for a name that `own_program` gave in this process. Raises: ConfigurationError for another."""
    name = workload.removeprefix(PROGRAM_PREFIX)
    if name not in _programs:
        raise ConfigurationError(f"program {name!r} is not known here; name its command: dl.command(command, inputs)")
    program = _programs[name]
    refusal = functools.partial(refusal_of, program)

    def build(around: Surroundings) -> ProgramWorkload:
        return ProgramWorkload(name, program, around.addresses).in_node_mode(around.node_mode)

    return WorkloadKind(
        name=name,
        title=name,
        asked="questions",
        cases=inputs_named,
        build=build,
        defaults=DEFAULTS,  # type: ignore[arg-type]
        roles=(ROLE,),
        in_this_process=True,
        retries=own_retries,
        serve=ProgramServices,
        refusal=refusal,
        carried_out_by=on_program,
        notes=(_SIGNALS_IN_WORDS, _OWN_IN_WORDS, *left_out(refusal)),
    )


# ---- the alternatives

_KILL, _TERMINATE = (signal.SIGKILL, "hard_timeout"), (signal.SIGTERM, "cancelled")
# Alternative → the signals in turn, the last at the deadline, each with the stop reason of a run that it ends.
_SIGNALS: Mapping[str, tuple[tuple[signal.Signals, str], ...]] = MappingProxyType(
    {"hard_timeout": (_KILL,), "async_cancellation": (_TERMINATE,), "hybrid": (_TERMINATE, _KILL)}
)
_TOLD, _IN_TURN = "cooperative", "hybrid"
_OWN_TIMEOUT = "native"
_NO_LIMIT = "unguarded"
# As the program `timeout` of GNU coreutils has it.
_TIMED_OUT_CODE = 124
_RESERVED_SHARE = 0.1
_WRAP_UP = "wrap_up"

_SIGNALS_IN_WORDS = (
    "B is SIGKILL and C is SIGTERM, to the process group at the deadline; E is SIGTERM when its reserve begins and "
    f"SIGKILL at the deadline, with {DEADLINE_VARIABLE} in its environment."
)
_OWN_IN_WORDS = f"F is its own timeout: {TIMEOUT_WORD} in its command, {TIMEOUT_VARIABLE} in its environment."


def refusal_of(program: Program, alternative: Alternative, *, by_name: bool = False) -> str:
    """Return why a program cannot have an alternative, with the remedy; empty if it can."""
    if alternative.name == "stop_flag":
        return "a program has no steps between which a flag could be looked at; use async_cancellation (C), a SIGTERM"
    options = json.loads(options_json(alternative))
    policies = str(options.pop("policies", ""))
    if alternative.name not in (*_SIGNALS, _TOLD, _OWN_TIMEOUT, _NO_LIMIT) or options:
        return "a program is told its deadline, ended by signals or by its own timeout; use A, B, C, E or F"
    reserves = alternative.name == _IN_TURN and TimePolicies.parse(policies).names == (_WRAP_UP,)
    # A program has no tools and no prompt that the lab could change: what a wrap_up says of them would do nothing.
    reserves = reserves and "/" not in policies
    if policies and not reserves:
        return f"no policy reaches the calls of another process; leave out {policies}, or name E+{_WRAP_UP}:5s"
    if alternative.name == _TOLD and not by_name:
        return f"nothing ends a program that does not look at {DEADLINE_VARIABLE}; name A if this one does"
    if alternative.name == _OWN_TIMEOUT and not (by_name or program.has_timeout):
        return f"the command has no {TIMEOUT_WORD}; put it where its timeout belongs, or name F for {TIMEOUT_VARIABLE}"
    return ""


@dataclass(frozen=True)
class OnProgram(AroundAlternative):
    """Runs a program under an alternative.

    A caller that sends SIGTERM under C waits for the end of the process, as long as that takes. What the process has
    started, and what goes on in its group, is work of the run until the run is over, and then killed; under E it is
    killed at the deadline.

    reserve_s: under E, how long before the deadline SIGTERM comes, in seconds; None for a tenth of the time limit.
    """

    reserve_s: float | None = None

    def run(self, runnable: ProgramRun, inputs: Mapping[str, Any], deadline: Deadline, recorder: RunLog) -> Outcome:
        """Start the program, wait for it, and signal it at the deadline.

        Raises: as `ProgramRun.start`, and ConfigurationError for a reserve that leaves the program no time.
        """
        name = self.alternative.name
        reserve_s, is_told = self._reserve_s(deadline), self.alternative.propagates
        has_own, reason = name == _OWN_TIMEOUT, ""
        runnable.start(inputs, deadline if has_own else None, deadline if is_told else None)
        for number, why in _SIGNALS.get(name, ()):
            is_asked_first = (number, why) != _SIGNALS[name][-1]
            if runnable.exited.wait(max(0.0, deadline.remaining() - (reserve_s if is_asked_first else 0.0))):
                break
            recorder.event("stop_requested", ROLE, signal=number.name)
            runnable.group.signal(number)
            reason = why
        runnable.exited.wait()
        if name == _IN_TURN:
            runnable.kill_rest_at(deadline)
        if reason:
            return _stopped(runnable, reason)
        if runnable.code == 0 and runnable.text():
            return Outcome("answered", runnable.text())
        if (has_own or is_told) and (runnable.code == _TIMED_OUT_CODE or deadline.passed()):
            return _stopped(runnable, "node_timeout" if has_own else "deadline")
        return Outcome("failed", runnable.text(), (), "error", runnable.error_type, runnable.failure())

    def _reserve_s(self, deadline: Deadline) -> float:
        """Return how long before the deadline E asks the program to end. Raises: ConfigurationError if at once."""
        reserve_s = _RESERVED_SHARE * deadline.limit_s if self.reserve_s is None else self.reserve_s
        if reserve_s >= deadline.limit_s:
            raise ConfigurationError(
                f"reserve_s is {reserve_s:g} and the time limit {deadline.limit_s:g} s: the program would be stopped "
                "as soon as it is started; reserve less, or give it more time"
            )
        return reserve_s


def on_program(alternative: Alternative) -> OnProgram:
    """Return what carries an alternative out on a program; the policy `wrap_up` of E says when SIGTERM comes."""
    policy: PropagationPolicy | None = getattr(alternative, "policy", None)
    wrap_up = None if policy is None else policy.policies.wrap_up
    return OnProgram(alternative, None if wrap_up is None else wrap_up.reserve_s)


def _stopped(run: ProgramRun, reason: str) -> Outcome:
    text = run.text()
    return Outcome("partial" if text else "timed_out", text, stop_reason=reason)
