"""Whether a run's deadline travels with it: an option of the alternatives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from langgraph.runtime import RunControl
from langgraph.types import Command

from docmind_lab.alternatives.base import Inputs, Runnable, RunProgress, stream_graph
from docmind_lab.alternatives.held_tools import hold_tools
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, PropagationPolicy, policy_scope
from docmind_lab.core.sync_async import Steps


def with_deadline_in_input(inputs: Inputs, deadline: Deadline) -> Mapping[str, Any] | Command[Any]:
    """Return the input with the deadline added; for a run that continues from a checkpoint, as a state update."""
    if inputs is None:
        return Command(update={DEADLINE_KEY: deadline.at_s})
    return {**inputs, DEADLINE_KEY: deadline.at_s}


def drain_once_passed(control: RunControl, deadline: Deadline) -> Callable[[], None]:
    """Return a function to call between steps, which drains the run once the deadline has passed.

    It ends the run only if a step is left: a finished answer is delivered, not thrown away.
    """

    def check() -> None:
        if deadline.passed():
            control.request_drain("deadline")

    return check


def _carries_deadline(runnable: Runnable) -> bool:
    """Whether the deadline reaches the graph's code by itself, and has no place in the graph's input."""
    doorways = getattr(runnable, "binding", {}).get("doorways", ())
    return any(getattr(doorway, "carries_deadline", False) for doorway in doorways)


def with_deadline_in_config(runnable: Runnable, deadline: Deadline) -> Runnable:
    """Return the graph with the deadline added to its configuration.

    A checkpoint may hold agents that wait to be started with the deadline of the run that was interrupted; what the
    configuration says takes its place.
    """
    return runnable.with_config({"configurable": {DEADLINE_KEY: deadline.at_s}})


class Propagation:
    """The base class of alternatives with the options `propagate` and `policy`.

    With `propagate`, the graph's state carries the deadline, the policy caps each call by what is left of it, and
    retries are ours, within the budget. Without, no call knows of a deadline, and retries are left to the clients.

    limits_nodes: whether it can do with limits of calls without that, as limits of nodes.
    """

    limits_nodes: ClassVar[bool] = False
    propagate: bool
    policy: PropagationPolicy

    @property
    def propagates(self) -> bool:
        """Whether the deadline travels with the run."""
        return self.propagate

    @property
    def client_retries(self) -> bool:
        """Whether retries are left to the model's client."""
        return not self.propagate

    def _stream(
        self, runnable: Runnable, inputs: Inputs, deadline: Deadline, progress: RunProgress, **options: Any
    ) -> Steps[None]:
        """Stream the graph to its end, under the policy. options: those of `stream_graph`."""
        tools = contextlib.nullcontext() if self.policy.policies.wrap_up is None else hold_tools()
        with policy_scope(self.policy, deadline), tools:
            held_inputs: Inputs | Command[Any] = inputs
            if self.propagate and not _carries_deadline(runnable):
                runnable = with_deadline_in_config(runnable, deadline)
                held_inputs = with_deadline_in_input(inputs, deadline)
            yield from stream_graph(runnable, held_inputs, progress, **options)
