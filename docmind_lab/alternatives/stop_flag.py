"""D: a stop flag between steps (ADR-056)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
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
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.sync_async import Operation, Steps

_REASON = "stop_flag"


@dataclass(frozen=True)
class StopFlag(Propagation, Stepped):
    """Raises LangGraph's own stop flag (`RunControl.request_drain`) by a timer; the graph checks it between steps.

    A timeout surfaces at the end of the step under way, up to one whole step late. No new step starts after it, and
    nothing keeps running after the return; the run could be resumed from its checkpoint.

    Args:
        propagate: Let the graph know of the deadline.
        policy: How a propagated deadline is applied to each call.
    """

    propagate: bool = False
    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "stop_flag"
    node_mode: ClassVar[SyncOrAsync] = "sync"

    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Run the graph where its caller is until it has ended or has seen the flag."""
        progress = RunProgress.of(runnable)
        return run_to_outcome(progress, self._with_flag(runnable, inputs, deadline, progress, recorder))

    def _with_flag(
        self, runnable: Runnable, inputs: Inputs, deadline: Deadline, progress: RunProgress, recorder: RunLog
    ) -> Steps[None]:
        control = RunControl()

        def raise_flag() -> None:
            recorder.event("stop_requested")
            control.request_drain(_REASON)

        timer = yield _timer(deadline, raise_flag)
        try:
            yield from self._stream(runnable, inputs, deadline, progress, control=control)
        finally:
            timer.cancel()


def _timer(deadline: Deadline, action: Callable[[], None]) -> Operation:
    """Return what starts a timer that acts at the deadline, in the caller's context, and gives it."""

    def in_a_thread() -> threading.Timer:
        context = contextvars.copy_context()
        timer = threading.Timer(max(0.0, deadline.remaining()), lambda: context.run(action))
        timer.daemon = True
        timer.start()
        return timer

    async def on_the_loop() -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(0.0, deadline.remaining()), action)

    return Operation(in_a_thread, on_the_loop)
