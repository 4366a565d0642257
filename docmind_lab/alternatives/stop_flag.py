"""D: a stop flag between steps (ADR-056)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import StateSnapshot

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
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.sync_async import Operation, Steps

_REASON = "stop_flag"


@dataclass(frozen=True)
class StopFlag(Propagation, Stepped):
    """Raises LangGraph's own stop flag (`RunControl.request_drain`) by a timer; the graph checks it between steps.

    A timeout surfaces at the end of the step under way, up to one whole step late. No new step starts after it, and
    nothing keeps running after the return; the run could be resumed from its checkpoint.

    Args:
        interrupt: Have LangGraph interrupt the run after every step (`interrupt_after="*"`), and resume it until the
            deadline has passed. That checks between the steps of the outermost graph only, and needs a checkpointer;
            agents inside inherit the flag.
        propagate: Let the graph know of the deadline.
        policy: How a propagated deadline is applied to each call.
    """

    interrupt: bool = False
    propagate: bool = False
    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "stop_flag"
    node_mode: ClassVar[SyncOrAsync] = "sync"

    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Run the graph where its caller is until it has ended or has seen the flag.

        Raises: ConfigurationError for a graph without a checkpointer that is to be interrupted.
        """
        if self.interrupt:
            _require_checkpointer(runnable)
        progress = RunProgress.of(runnable)
        work = self._with_interrupts if self.interrupt else self._with_flag
        return run_to_outcome(progress, work(runnable, inputs, deadline, progress, recorder))

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

    def _with_interrupts(
        self, runnable: Runnable, inputs: Inputs, deadline: Deadline, progress: RunProgress, recorder: RunLog
    ) -> Steps[None]:
        going_in, config = inputs, runnable.config or {}
        while True:
            yield from self._stream(runnable, going_in, deadline, progress, interrupt_after="*")
            state = yield Operation(lambda: runnable.get_state(config), lambda: runnable.aget_state(config))
            if not _goes_on(state, deadline, recorder):
                progress.pass_breakpoint()
                return
            going_in = None


def _require_checkpointer(runnable: Runnable) -> None:
    if not isinstance(runnable.checkpointer, BaseCheckpointSaver):
        raise ConfigurationError(
            "StopFlag(interrupt=True) needs a graph with a checkpointer: an interrupted run goes on from a "
            "checkpoint; compile the graph with one, or leave interrupt off"
        )


def _goes_on(state: StateSnapshot, deadline: Deadline, recorder: RunLog) -> bool:
    """Whether an interrupted run has a step left. Raises: GraphDrained if it has, and the deadline has passed."""
    if not state.next or any(task.interrupts for task in state.tasks):
        return False
    if deadline.passed():
        recorder.event("stop_requested")
        raise GraphDrained(_REASON)
    return True


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
