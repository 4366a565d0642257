"""The negative control: no limit at all."""

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
class Unguarded:
    """Nobody enforces anything; the clients keep their own defaults (600 s per read and 2 retries in openai).

    A study must find that this one overruns: it is how a study shows that it can see an overrun at all.
    """

    name: ClassVar[str] = "unguarded"
    propagates: ClassVar[bool] = False
    node_colour: ClassVar[NodeColour] = "sync"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Run the graph to its end, however long that takes."""
        progress = RunProgress.of(runnable)

        def work() -> None:
            for chunk in runnable.stream(inputs, stream_mode=STREAM_MODES):
                progress.show(chunk)

        return run_to_outcome(progress, work)
