"""Whether a run's deadline travels with it: an option of every alternative, however it enforces the deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from langgraph.types import Command

from docmind_lab.alternatives.base import Inputs, Runnable
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, PropagationPolicy, policy_scope


def with_deadline_in_input(inputs: Inputs, deadline: Deadline) -> Mapping[str, Any] | Command[Any]:
    """Return the input with the deadline added; for a run that continues from a checkpoint, as a state update."""
    if inputs is None:
        return Command(update={DEADLINE_KEY: deadline.at_s})
    return {**inputs, DEADLINE_KEY: deadline.at_s}


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
    """

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

    def _with_deadline(self, runnable: Runnable, deadline: Deadline) -> Runnable:
        return with_deadline_in_config(runnable, deadline) if self.propagate else runnable

    def _inputs(self, inputs: Inputs, deadline: Deadline) -> Inputs | Command[Any]:
        return with_deadline_in_input(inputs, deadline) if self.propagate else inputs

    @contextlib.contextmanager
    def _policy_in_force(self, deadline: Deadline) -> Iterator[None]:
        """Apply the policy around the graph's run, in the thread or task that runs the graph."""
        with policy_scope(self.policy, deadline):
            yield
