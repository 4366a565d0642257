"""A: cooperative deadline propagation (ADR-056)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import (
    Inputs,
    NodeColour,
    Outcome,
    Progress,
    Runnable,
    carrying,
    run_to_outcome,
    seeded,
)
from docmind_lab.deadlines import Deadline, PropagationPolicy, policy_scope
from docmind_lab.recorder import Recorder


@dataclass(frozen=True)
class Cooperative:
    """The deadline travels in the graph's state; each call is capped by what is left of it, in total.

    policy: how it is applied; `PropagationPolicy(cap="per_read")` is the naive variant that hands each client a
    timeout and trusts it, which a trickled body defeats.

    A timeout surfaces at the call that it cuts, in the caller's own thread. Nothing keeps running on this side; a
    server that does not notice its client leaving goes on by itself.
    """

    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "cooperative"
    letter: ClassVar[str] = "A"
    propagates: ClassVar[bool] = True
    node_colour: ClassVar[NodeColour] = "sync"
    client_retries: ClassVar[bool] = False

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Stream the graph in the caller's thread; between steps too, an exceeded deadline ends it."""
        progress = Progress()
        control = RunControl()

        def work() -> None:
            with policy_scope(self.policy):
                states = carrying(runnable, deadline).stream(
                    seeded(inputs, deadline), stream_mode="values", control=control
                )
                for state in states:
                    progress.show(state)
                    if deadline.passed():
                        # Ends the run only if a step is left: a finished answer is delivered, not thrown away.
                        control.request_drain("deadline")

        return run_to_outcome(progress, work)
