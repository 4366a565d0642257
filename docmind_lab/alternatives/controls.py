"""Negative controls: no limit at all, and a limit that is checked only after the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.alternatives.base import (
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    Stepped,
    SyncOrAsync,
    run_to_outcome,
    stream_graph,
)
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.sync_async import Steps


@dataclass(frozen=True)
class Unguarded(Stepped):
    """Enforces nothing; the clients keep their own defaults (600 s per read and 2 retries in openai).

    A study must find that this one overruns: it is how a study shows that it can see an overrun at all.
    """

    name: ClassVar[str] = "unguarded"
    propagates: ClassVar[bool] = False
    node_mode: ClassVar[SyncOrAsync] = "sync"
    client_retries: ClassVar[bool] = True

    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Run the graph to its end, however long that takes."""
        progress = RunProgress.of(runnable)
        return run_to_outcome(progress, stream_graph(runnable, inputs, progress))


@dataclass(frozen=True)
class FakeTimeout(Unguarded):
    """Checks the deadline only after the graph has ended, and then reports a timeout.

    This is a timeout as it is often written: the check stands after the call that it should have cut short. Nothing is
    cut, capped or stopped. A study must find it out by what was measured, whatever it says of itself
    (`findings.controls.enforcement`).
    """

    name: ClassVar[str] = "fake_timeout"

    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Run the graph to its end; then report a timeout if the deadline has passed."""
        outcome = yield from super().steps(runnable, inputs, deadline, recorder)
        return Outcome("timed_out", stop_reason="deadline") if deadline.passed() else outcome
