"""E: what DocMind itself moved to in 2026-07: async, a limit on the last step, a drain, a fence, and A's caps."""

from __future__ import annotations

import asyncio
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.runtime import RunControl

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
from docmind_lab.alternatives.fence import Fence, fenced
from docmind_lab.alternatives.propagation import Propagation, drain_once_passed
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.lateness import RETURN_SLACK_S, STEP_SLACK_S
from docmind_lab.core.sync_async import afinish, on_a_loop


@dataclass(frozen=True)
class Hybrid(Propagation):
    """Caps each async call by the deadline, as A does, and adds a step limit, a drain and a fence.

    The step that is still at work 50 ms after the deadline is cancelled. A caller still waiting 100 ms after it leaves,
    with a drain requested, whatever the event loop does. And once the caller has its answer, a fence keeps the old run
    out of the thread's checkpoints.

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

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Stream the graph on the shared loop; the calling thread waits until shortly after the deadline at most."""
        guard, loop = _Guard.around(runnable, recorder), shared_loop()
        future = loop.submit(self._answer(guard, inputs, deadline, recorder))
        try:
            return future.result(timeout=max(0.0, deadline.remaining()) + RETURN_SLACK_S)
        except FutureTimeoutError:
            if not any(limit.expired() for limit in guard.limits):
                # The loop has not come to the limit of the last step, which is over: a node blocks it.
                recorder.event("loop_blocked", line=loop.line_at_work)
            future.cancel()
            return guard.leave(recorder)
        finally:
            guard.fence.close()

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Stream the graph in a task of its own; the caller's task waits until shortly after the deadline at most.

        A caller that is cancelled takes its task with it. A node that blocks the loop blocks the caller too.
        """
        guard, loop = _Guard.around(runnable, recorder), asyncio.get_running_loop()
        # What the caller waits for: the outcome, or None when it is time to leave. The run gives it itself, so that the
        # caller goes on without waiting for the loop to see the end of the task.
        handover: asyncio.Future[Outcome | None] = loop.create_future()

        def hand_over(outcome: Outcome | None = None) -> None:
            if not handover.done():
                handover.set_result(outcome)

        async def answer() -> None:
            try:
                outcome = await self._answer(guard, inputs, deadline, recorder)
            except asyncio.CancelledError:
                hand_over()
                raise
            except Exception as error:  # noqa: BLE001 - raised in the caller's task
                if not handover.done():
                    handover.set_exception(error)
            else:
                hand_over(outcome)

        task = asyncio.create_task(answer())
        timer = loop.call_later(max(0.0, deadline.remaining()) + RETURN_SLACK_S, hand_over)
        try:
            outcome = await handover
            return guard.leave(recorder) if outcome is None else outcome
        finally:
            timer.cancel()
            guard.fence.close()
            if not task.done():
                guard.control.request_drain("deadline")
                task.cancel()

    async def _answer(self, guard: _Guard, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        recorder.share_thread()
        options = {"control": guard.control, "between_steps": drain_once_passed(guard.control, deadline)}

        async def stream() -> None:
            # Around the whole stream, not each step: LangGraph's `step_timeout` would cost a task for each step.
            async with asyncio.timeout(max(0.0, deadline.remaining()) + STEP_SLACK_S) as limit:
                guard.limits.append(limit)
                await afinish(self._stream(guard.runnable, inputs, deadline, guard.progress, **options))

        def stop_reason_of(error: Exception) -> str:
            return "step_timeout" if isinstance(error, TimeoutError) and deadline.passed() else ""

        return await afinish(run_to_outcome(guard.progress, on_a_loop(stream), stop_reason_of))


@dataclass(frozen=True)
class _Guard:
    """What stands around one run: its graph with a fence, its flag, its progress, and the limit of its last step."""

    runnable: Runnable
    fence: Fence
    control: RunControl
    progress: RunProgress
    limits: list[asyncio.Timeout] = field(default_factory=list)

    @classmethod
    def around(cls, runnable: Runnable, recorder: RunLog) -> _Guard:
        fence = Fence()
        return cls(fenced(runnable, fence, recorder), fence, RunControl(), RunProgress.of(runnable))

    def leave(self, recorder: RunLog) -> Outcome:
        """Return the outcome of a caller that leaves the run behind, and ask the run to stop."""
        recorder.event("stop_requested")
        self.control.request_drain("deadline")
        return self.progress.early_outcome("left_behind")
