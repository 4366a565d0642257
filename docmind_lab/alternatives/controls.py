"""Negative controls: no limit at all, and a limit that is checked only after the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.alternatives.base import (
    STREAM_MODES,
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    SyncOrAsync,
    run_to_outcome,
    run_to_outcome_async,
)
from docmind_lab.core.deadlines import Deadline


@dataclass(frozen=True)
class Unguarded:
    """Enforces nothing; the clients keep their own defaults (600 s per read and 2 retries in openai).

    A study must find that this one overruns: it is how a study shows that it can see an overrun at all.
    """

    name: ClassVar[str] = "unguarded"
    propagates: ClassVar[bool] = False
    node_mode: ClassVar[SyncOrAsync] = "sync"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph to its end, however long that takes."""
        progress = RunProgress.of(runnable)

        def work() -> None:
            for chunk in runnable.stream(inputs, stream_mode=STREAM_MODES):
                progress.show(chunk)

        return run_to_outcome(progress, work)

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """`run`, in the caller's task."""
        progress = RunProgress.of(runnable)

        async def work() -> None:
            async for chunk in runnable.astream(inputs, stream_mode=STREAM_MODES):
                progress.show(chunk)

        return await run_to_outcome_async(progress, work)


@dataclass(frozen=True)
class FakeTimeout(Unguarded):
    """Checks the deadline only after the graph has ended, and then reports a timeout.

    This is a timeout as it is often written: the check stands after the call that it should have cut short. Nothing is
    cut, capped or stopped. A study must find it out by what was measured, whatever it says of itself
    (`findings.controls.enforcement`).
    """

    name: ClassVar[str] = "fake_timeout"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph to its end; then report a timeout if the deadline has passed."""
        outcome = super().run(runnable, inputs, deadline, recorder)
        return Outcome("timed_out", stop_reason="deadline") if deadline.passed() else outcome

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """`run`, in the caller's task."""
        outcome = await super().run_async(runnable, inputs, deadline, recorder)
        return Outcome("timed_out", stop_reason="deadline") if deadline.passed() else outcome
