"""A second negative control: it says that it times out, and does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.alternatives.base import (
    STREAM_MODES,
    Inputs,
    NodeColour,
    Outcome,
    Runnable,
    RunProgress,
    run_to_outcome,
)
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder


@dataclass(frozen=True)
class FakeTimeout:
    """Looks at the deadline once the graph has ended, and only then says that it was late.

    This is a timeout as it is often written: the check stands after the call that it should have cut short. Nothing is
    cut, capped or stopped. A study must find it out by what was measured, whatever it is called and says of itself
    (`findings.controls.enforcement`).

    A timeout surfaces whenever the run ends by itself, as an empty outcome; nothing keeps running afterwards.
    """

    name: ClassVar[str] = "fake_timeout"
    propagates: ClassVar[bool] = False
    node_colour: ClassVar[NodeColour] = "sync"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Run the graph to its end; then have it timed out if that was too late."""
        progress = RunProgress.of(runnable)

        def work() -> None:
            for chunk in runnable.stream(inputs, stream_mode=STREAM_MODES):
                progress.show(chunk)

        outcome = run_to_outcome(progress, work)
        return Outcome("timed_out", stop_reason="deadline") if deadline.passed() else outcome
