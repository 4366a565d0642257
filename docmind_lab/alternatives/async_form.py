"""An alternative in its async form: for a graph that has no sync one, and as a caller on an event loop has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.alternatives.base import Alternative, AroundAlternative, Inputs, Outcome, RunLog, Runnable, SyncOrAsync
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.deadlines import Deadline


def on_event_loop(alternative: Alternative) -> Alternative:
    """Return an alternative that runs graphs on an event loop: itself if it does so anyway."""
    return alternative if alternative.node_mode == "async" else in_async_form(alternative)


def in_async_form(alternative: Alternative) -> Alternative:
    """Return an alternative that runs graphs by its `run_async`, as a caller does that awaits them."""
    return _OnEventLoop(alternative)  # type: ignore[return-value]


@dataclass(frozen=True)
class _OnEventLoop(AroundAlternative):
    """Runs a graph by the alternative's `run_async`, as a caller on an event loop would."""

    node_mode: ClassVar[SyncOrAsync] = "async"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph on the shared loop; the calling thread waits."""
        return shared_loop().run(self.run_async(runnable, inputs, deadline, recorder))

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph in the caller's task."""
        recorder.share_thread()
        return await self.alternative.run_async(runnable, inputs, deadline, recorder)
