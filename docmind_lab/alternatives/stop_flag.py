"""D: a stop flag between steps (ADR-056)."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import NodeColour, Outcome, Progress, Runnable, run_to_outcome
from docmind_lab.deadlines import Deadline
from docmind_lab.recorder import Recorder


@dataclass(frozen=True)
class StopFlag:
    """A timer raises LangGraph's own stop flag (`RunControl.request_drain`), which the graph looks at between steps.

    A timeout surfaces at the end of the step under way, up to one whole step late. No new step starts after it, and
    nothing keeps running after the return; the run could be resumed from its checkpoint.
    """

    name: ClassVar[str] = "stop_flag"
    letter: ClassVar[str] = "D"
    propagates: ClassVar[bool] = False
    node_colour: ClassVar[NodeColour] = "sync"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Runnable, inputs: Mapping[str, Any], deadline: Deadline, recorder: Recorder) -> Outcome:
        """Stream the graph in the caller's thread with a timer beside it."""
        progress = Progress.of(inputs)
        control = RunControl()

        def raise_flag() -> None:
            recorder.event("stop_requested")
            control.request_drain("stop_flag")

        context = contextvars.copy_context()
        timer = threading.Timer(max(0.0, deadline.remaining()), lambda: context.run(raise_flag))
        timer.daemon = True
        timer.start()

        def work() -> None:
            for state in runnable.stream(inputs, stream_mode="values", control=control):
                progress.show(state)

        try:
            return run_to_outcome(progress, work)
        finally:
            timer.cancel()
