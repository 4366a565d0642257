"""D: a stop flag between steps (ADR-056)."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
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
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.network.recorder import Recorder

_REASON = "stop_flag"


@dataclass(frozen=True)
class StopFlag(Propagation):
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

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Run the graph in the caller's thread until it has ended or has seen the flag.

        Raises: ConfigurationError for a graph without a checkpointer that is to be interrupted.
        """
        if self.interrupt:
            return self._with_interrupts(runnable, inputs, deadline, recorder)
        return self._with_flag(runnable, inputs, deadline, recorder)

    def _with_flag(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        progress, control = RunProgress.of(runnable), RunControl()

        def raise_flag() -> None:
            recorder.event("stop_requested")
            control.request_drain(_REASON)

        def work() -> None:
            with self._policy_in_force(deadline):
                chunks = self._with_deadline(runnable, deadline).stream(
                    self._inputs(inputs, deadline), stream_mode=STREAM_MODES, control=control
                )
                for chunk in chunks:
                    progress.show(chunk)

        timer = _timer(deadline, raise_flag)
        try:
            return run_to_outcome(progress, work)
        finally:
            timer.cancel()

    def _with_interrupts(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        if not isinstance(runnable.checkpointer, BaseCheckpointSaver):
            raise ConfigurationError(
                "StopFlag(interrupt=True) needs a graph with a checkpointer: an interrupted run goes on from a "
                "checkpoint; compile the graph with one, or leave interrupt off"
            )
        progress, carried = RunProgress.of(runnable), self._with_deadline(runnable, deadline)

        def work() -> None:
            going_in = inputs
            while True:
                with self._policy_in_force(deadline):
                    chunks = carried.stream(
                        self._inputs(going_in, deadline), stream_mode=STREAM_MODES, interrupt_after="*"
                    )
                    for chunk in chunks:
                        progress.show(chunk)
                if not runnable.get_state(runnable.config or {}).next:
                    return
                if deadline.passed():
                    recorder.event("stop_requested")
                    raise GraphDrained(_REASON)
                going_in = None

        return run_to_outcome(progress, work)


def _timer(deadline: Deadline, action: Callable[[], None]) -> threading.Timer:
    """Return a started timer that acts at the deadline, in the caller's context."""
    context = contextvars.copy_context()
    timer = threading.Timer(max(0.0, deadline.remaining()), lambda: context.run(action))
    timer.daemon = True
    timer.start()
    return timer
