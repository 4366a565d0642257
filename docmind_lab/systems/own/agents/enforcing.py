"""Which alternatives an agent can have, and what carries each of them out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from docmind_lab.alternatives import ALTERNATIVES, Alternative, Native, StopFlag
from docmind_lab.alternatives.async_form import awaited
from docmind_lab.alternatives.base import (
    AroundAlternative,
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    Stepped,
    SyncOrAsync,
    run_to_outcome,
)
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.sync_async import Steps
from docmind_lab.systems.own.agents.agent import Agent, AgentRun, NativeTimeoutReached, with_run

_NO_STOP = "the agent takes no argument should_stop, a function that returns True when it is time to stop; add it"
# A limit of 0 is no limit in several frameworks.
_LEAST_S = 0.001


def refusal_of(agent: Agent, alternative: Alternative, *, by_name: bool = False) -> str:
    """Return why an agent cannot have an alternative, with the remedy if there is one; empty if it can."""
    if isinstance(alternative, StopFlag) or getattr(alternative, "drain_on_timeout", False):
        return "" if agent.takes_stop else _NO_STOP
    if isinstance(alternative, Native):
        if alternative.per_step:
            return "an agent has no steps to limit; use native (F)"
        if agent.native is None:
            return f"{agent.framework} has no timeout of its own for a whole run"
    return ""


def notes_on(agent: Agent) -> tuple[str, ...]:
    """Return sentences on the alternatives that an agent cannot have, and on what its own timeout is."""
    native = agent.native
    named = () if native is None else (f"F is the agent's own timeout: {native.title} ({agent.framework}).",)
    refusals = ((kind, refusal_of(agent, kind())) for kind in ALTERNATIVES.values())
    return *named, *(f"{letter_of(kind.name)} is left out: {reason}." for kind, reason in refusals if reason)


def carried_out_by(agent: Agent, alternative: Alternative) -> Any:
    """Return what carries an alternative out on an agent: with its own flag and its own timeout."""
    if isinstance(alternative, Native):
        own = OwnTimeout(alternative.propagate, alternative.policy)
        return awaited(own) if agent.is_async else own
    return OnAgent(alternative)


@dataclass(frozen=True)
class OnAgent(AroundAlternative):
    """Runs an agent under an alternative; what it returns because it was told to stop is a partial answer."""

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """See `Alternative.run`."""
        run = AgentRun()
        outcome = self.alternative.run(with_run(runnable, run), inputs, deadline, recorder)
        if outcome.outcome != "answered" or not run.has_stopped:
            return outcome
        return Outcome("partial", outcome.answer, outcome.documents, "stop_flag", state=outcome.state)


@dataclass(frozen=True)
class OwnTimeout(Propagation, Stepped):
    """F for an agent: the timeout that its framework offers for a whole run, set to the remaining time.

    What keeps running afterwards is the framework's affair, and what the measurement shows.
    """

    propagate: bool
    policy: PropagationPolicy

    name: ClassVar[str] = Native.name
    node_mode: ClassVar[SyncOrAsync] = "sync"

    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Run the agent under its framework's timeout."""
        progress = RunProgress.of(runnable)
        limited = with_run(runnable, AgentRun(max(_LEAST_S, deadline.remaining())))
        return run_to_outcome(progress, self._stream(limited, inputs, deadline, progress), _reason_of_timeout)


def _reason_of_timeout(error: Exception) -> str:
    return "node_timeout" if isinstance(error, NativeTimeoutReached) else ""
