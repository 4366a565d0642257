"""C: async cancellation (ADR-056)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from docmind_lab.alternatives.base import NodeColour, Outcome, Progress, Runnable, run_to_outcome
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.deadlines import Deadline
from docmind_lab.recorder import Recorder


@dataclass(frozen=True)
class AsyncCancellation:
    """The graph runs as a task under `asyncio.timeout`; at the deadline the task is cancelled, and its calls with it.

    It runs on one long-lived loop in a thread of its own, so it may be called from a running loop (a notebook) too:
    the caller's thread blocks meanwhile.

    A timeout surfaces in the task, which returns what it has streamed. Async calls are cut and their connections
    closed; sync nodes and tools run in threads that nobody can cancel and keep running.
    """

    name: ClassVar[str] = "async_cancellation"
    letter: ClassVar[str] = "C"
    propagates: ClassVar[bool] = False
    node_colour: ClassVar[NodeColour] = "async"
    client_retries: ClassVar[bool] = True

    def run(self, runnable: Runnable, inputs: Mapping[str, Any], deadline: Deadline, recorder: Recorder) -> Outcome:
        """Stream the graph on the shared loop until the deadline."""
        return shared_loop().run(self._run(runnable, inputs, deadline, recorder))

    async def _run(
        self, runnable: Runnable, inputs: Mapping[str, Any], deadline: Deadline, recorder: Recorder
    ) -> Outcome:
        recorder.share_thread()
        progress = Progress.of(inputs)
        failure: list[Exception] = []

        async def stream() -> None:
            async for state in runnable.astream(inputs, stream_mode="values"):
                progress.show(state)

        try:
            async with asyncio.timeout(max(0.0, deadline.remaining())) as limit:
                try:
                    await stream()
                except Exception as error:  # noqa: BLE001 - told apart from the limit's own TimeoutError below
                    failure.append(error)
        except TimeoutError:
            return progress.stopped("cancelled")
        if failure and limit.expired():
            return progress.stopped("cancelled")

        def end() -> None:
            if failure:
                raise failure[0]

        return run_to_outcome(progress, end)
