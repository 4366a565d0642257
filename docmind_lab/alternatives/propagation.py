"""Whether a run's deadline travels with it: an option of every alternative, however it enforces the deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from langgraph.types import Command

from docmind_lab.alternatives.base import Inputs, Runnable
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, PropagationPolicy, policy_scope


def seeded(inputs: Inputs, deadline: Deadline) -> Mapping[str, Any] | Command[Any]:
    """The input with the deadline in it; a run that goes on from a checkpoint gets it as an update of its state."""
    if inputs is None:
        return Command(update={DEADLINE_KEY: deadline.at_s})
    return {**inputs, DEADLINE_KEY: deadline.at_s}


def carrying(runnable: Runnable, deadline: Deadline) -> Runnable:
    """The graph with the deadline in its configuration too.

    A checkpoint may hold agents that wait to be started with the deadline of the run that was interrupted; what the
    configuration says takes its place.
    """
    return runnable.with_config({"configurable": {DEADLINE_KEY: deadline.at_s}})


class Propagation:
    """What follows from the options `propagate` and `policy` of an alternative.

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

    def _carried(self, runnable: Runnable, deadline: Deadline) -> Runnable:
        return carrying(runnable, deadline) if self.propagate else runnable

    def _inputs(self, inputs: Inputs, deadline: Deadline) -> Inputs | Command[Any]:
        return seeded(inputs, deadline) if self.propagate else inputs

    @contextlib.contextmanager
    def _in_force(self, deadline: Deadline) -> Iterator[None]:
        """The policy around the graph's run, in the thread or task that the graph runs in."""
        with policy_scope(self.policy, deadline):
            yield
