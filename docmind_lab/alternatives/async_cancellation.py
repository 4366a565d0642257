"""C: async cancellation (ADR-056)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import ClassVar

from docmind_lab.alternatives.base import (
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    SyncOrAsync,
    run_to_outcome,
)
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.sync_async import afinish, on_a_loop


@dataclass(frozen=True)
class AsyncCancellation(Propagation):
    """Runs the graph as a task under `asyncio.timeout`; the deadline cancels the task and its calls.

    It runs on one long-lived loop in a thread of its own, so that it may be called from a running loop (a notebook)
    too; the caller's thread blocks meanwhile. A timeout surfaces in the task, which returns what it has streamed. Async
    calls are cut and their connections closed; sync nodes and tools run in threads, cannot be cancelled and go on.

    Args:
        propagate: Let the graph know of the deadline.
        policy: How a propagated deadline is applied to each call.
    """

    propagate: bool = False
    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "async_cancellation"
    node_mode: ClassVar[SyncOrAsync] = "async"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Stream the graph on the shared loop until the deadline."""
        return shared_loop().run(self.run_async(runnable, inputs, deadline, recorder))

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Stream the graph in the caller's task until the deadline, which cancels the task's wait for the graph."""
        recorder.share_thread()
        progress = RunProgress.of(runnable)
        limit = asyncio.timeout(max(0.0, deadline.remaining()))

        async def stream() -> None:
            async with limit:
                await afinish(self._stream(runnable, inputs, deadline, progress))

        # Whatever a cancelled graph raises while it unwinds, it was the limit that ended it.
        outcome = run_to_outcome(progress, on_a_loop(stream), lambda error: "cancelled" if limit.expired() else "")
        return await afinish(outcome)
