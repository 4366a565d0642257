"""A: cooperative deadline propagation (ADR-056)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import (
    STREAM_MODES,
    Inputs,
    Outcome,
    Runnable,
    RunProgress,
    SyncOrAsync,
    run_to_outcome,
)
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.network.recorder import Recorder


@dataclass(frozen=True)
class Cooperative(Propagation):
    """Carries the deadline in the graph's state; the remaining time caps each call, in total.

    A timeout surfaces at the call that it cuts, in the caller's own thread. Nothing keeps running on this side; a
    server that does not notice its client leaving goes on by itself.

    Args:
        policy: How the deadline is applied to each call. `PropagationPolicy(cap="per_read")` is the naive variant that
            hands each client a timeout and trusts it, which a trickled body defeats.
        propagate: Off, it is what DocMind did before ADR-056: checks between steps, calls without a cap, the clients'
            own retries. A timeout then surfaces at the end of the step under way.
    """

    policy: PropagationPolicy = field(default_factory=PropagationPolicy)
    propagate: bool = True

    name: ClassVar[str] = "cooperative"
    node_mode: ClassVar[SyncOrAsync] = "sync"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Stream the graph in the caller's thread; stop between steps too once the deadline has passed."""
        progress = RunProgress.of(runnable)
        control = RunControl()

        def work() -> None:
            with self._policy_in_force(deadline):
                chunks = self._with_deadline(runnable, deadline).stream(
                    self._inputs(inputs, deadline), stream_mode=STREAM_MODES, control=control
                )
                for chunk in chunks:
                    if progress.show(chunk) and deadline.passed():
                        # Ends the run only if a step is left: a finished answer is delivered, not thrown away.
                        control.request_drain("deadline")

        return run_to_outcome(progress, work)
