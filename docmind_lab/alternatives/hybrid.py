"""E: what DocMind itself moved to in 2026-07: async, a limit on each step, a drain, a fence, and A's caps."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
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
    run_to_outcome_async,
)
from docmind_lab.alternatives.bound import bound
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.alternatives.fence import Fence, fenced
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.network.recorder import Recorder

# A call that is cut at the deadline unwinds through its graph within this on a busy machine; only what has no cap of
# its own (a node that waits without a client) is still there afterwards, and its step is cancelled.
STEP_SLACK_S = 0.05
# A node that blocks the event loop hears no cancellation; the caller leaves it behind after as much again.
RETURN_SLACK_S = 0.1


@dataclass(frozen=True)
class Hybrid(Propagation):
    """Caps each async call by the deadline, as A does, and adds a step limit, a drain and a fence.

    A step that is still at work 50 ms after the deadline is cancelled (LangGraph's `step_timeout`). A caller still
    waiting 100 ms after it leaves, with a drain requested, whatever the event loop does. And once the caller has its
    answer, a fence keeps the old run out of the thread's checkpoints.

    A timeout surfaces at the call that it cuts. A node that blocks, in a thread or on the loop, can keep running; it
    starts no further step.

    Args:
        propagate: Let the graph know of the deadline; off, the three lines stand alone.
        policy: How a propagated deadline is applied to each call.
    """

    policy: PropagationPolicy = field(default_factory=PropagationPolicy)
    propagate: bool = True

    name: ClassVar[str] = "hybrid"
    node_mode: ClassVar[SyncOrAsync] = "async"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Stream the graph on the shared loop; the calling thread waits until shortly after the deadline at most."""
        fence, control, progress = Fence(), RunControl(), RunProgress.of(runnable)
        guarded = bound(
            fenced(self._with_deadline(runnable, deadline), fence, recorder),
            step_limit_s=lambda: deadline.remaining() + STEP_SLACK_S,
        )

        async def stream() -> None:
            with self._policy_in_force(deadline):
                chunks = guarded.astream(self._inputs(inputs, deadline), stream_mode=STREAM_MODES, control=control)
                async for chunk in chunks:
                    if progress.show(chunk) and deadline.passed():
                        # Ends the run only if a step is left: a finished answer is delivered, not thrown away.
                        control.request_drain("deadline")

        def step_timed_out(error: Exception) -> str:
            return "step_timeout" if isinstance(error, TimeoutError) and deadline.passed() else ""

        async def answer() -> Outcome:
            recorder.share_thread()
            return await run_to_outcome_async(progress, stream, step_timed_out)

        future = shared_loop().submit(answer())
        try:
            return future.result(timeout=max(0.0, deadline.remaining()) + RETURN_SLACK_S)
        except FutureTimeoutError:
            recorder.event("stop_requested")
            control.request_drain("deadline")
            future.cancel()
            return progress.stopped("left_behind")
        finally:
            fence.close()
