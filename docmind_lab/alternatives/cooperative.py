"""A: cooperative deadline propagation (ADR-056)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import NodeColour, Outcome, Progress, Runnable, run_to_outcome
from docmind_lab.deadlines import DEADLINE_KEY, Deadline, PropagationPolicy, policy_scope
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

    def run(self, runnable: Runnable, inputs: Mapping[str, Any], deadline: Deadline, recorder: Recorder) -> Outcome:
        """Stream the graph in the caller's thread; between steps too, an exceeded deadline ends it."""
        progress = Progress.of(inputs)
        seeded = {**inputs, DEADLINE_KEY: deadline.at_s}
        control = RunControl()

        def work() -> None:
            with policy_scope(self.policy):
                for state in runnable.stream(seeded, stream_mode="values", control=control):
                    progress.show(state)
                    if deadline.passed():
                        # Ends the run only if a step is left: a finished answer is delivered, not thrown away.
                        control.request_drain("deadline")

        return run_to_outcome(progress, work)
