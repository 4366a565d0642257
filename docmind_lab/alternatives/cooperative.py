"""A: cooperative deadline propagation (ADR-056)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import (
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    Stepped,
    SyncOrAsync,
    run_to_outcome,
)
from docmind_lab.alternatives.propagation import Propagation, drain_once_passed
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.sync_async import Steps


@dataclass(frozen=True)
class Cooperative(Propagation, Stepped):
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

    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Stream the graph where its caller is; stop between steps too once the deadline has passed."""
        progress, control = RunProgress.of(runnable), RunControl()
        options = {"control": control, "between_steps": drain_once_passed(control, deadline)}
        return run_to_outcome(progress, self._stream(runnable, inputs, deadline, progress, **options))
