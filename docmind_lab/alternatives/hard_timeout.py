"""B: a hard timeout around the coordinator (ADR-056)."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import (
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    SyncOrAsync,
    run_to_outcome,
)
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.sync_async import Steps, afinish, finish, in_daemon_thread

_REASON = "hard_timeout"
_left_behind: set[asyncio.Task[Outcome]] = set()


def _forget(task: asyncio.Task[Outcome]) -> None:
    _left_behind.discard(task)
    # Nobody waits for its exception. asyncio logs one that was never retrieved.
    if not task.cancelled():
        task.exception()


def _do_work(recorder: RunLog, progress: RunProgress, work: Steps[None]) -> Steps[Outcome]:
    """Do the work, recorded as work of the run, and return its outcome."""
    with recorder.work("run"):
        return (yield from run_to_outcome(progress, work))


@dataclass(frozen=True)
class HardTimeout(Propagation):
    """Runs the graph in a thread; the caller waits for a future until the deadline and no longer.

    A timeout surfaces in the caller, who has nothing but the fact, unless the run is streamed. The graph keeps running
    to its end, or to the end of its step when it is drained: its model calls, its checkpoints, its thread (a daemon
    thread, which does not keep the interpreter alive). With `propagate` the call under way is cut, and the graph ends.

    Args:
        drain_on_timeout: Ask the graph to stop at its next step (`RunControl.request_drain`) once the caller has left.
        naive: Submit to a `with ThreadPoolExecutor()`, whose exit waits for the thread, so that the timeout does
            nothing for the caller. A common mistake, kept to be measured.
        propagate: Let the graph know of the deadline.
        streamed: A caller that leaves returns what the nodes have written until then.
        policy: How a propagated deadline is applied to each call.
    """

    drain_on_timeout: bool = False
    naive: bool = False
    propagate: bool = False
    streamed: bool = False
    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "hard_timeout"
    node_mode: ClassVar[SyncOrAsync] = "sync"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph in a thread and wait for it until the deadline."""
        progress, control = RunProgress.of(runnable), RunControl()
        work = self._stream(runnable, inputs, deadline, progress, control=control)
        wait = self._with_pool if self.naive else self._with_thread
        try:
            return wait(lambda: finish(_do_work(recorder, progress, work)), deadline)
        except FutureTimeoutError:
            return self._leave(progress, control, recorder)

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph in a task of its own, and wait for it until the deadline; the task is not cancelled."""
        progress, control = RunProgress.of(runnable), RunControl()
        work = self._stream(runnable, inputs, deadline, progress, control=control)
        task = asyncio.create_task(afinish(_do_work(recorder, progress, work)))
        # The loop itself holds tasks weakly, and this one may outlive its caller.
        _left_behind.add(task)
        task.add_done_callback(_forget)
        await asyncio.wait({task}, timeout=max(0.0, deadline.remaining()))
        if not task.done() and self.naive:
            await asyncio.wait({task})
        elif task.done():
            return task.result()
        return self._leave(progress, control, recorder)

    def _leave(self, progress: RunProgress, control: RunControl, recorder: RunLog) -> Outcome:
        """Return the outcome of a caller that no longer waits, and ask for the drain if there is to be one."""
        if self.drain_on_timeout:
            recorder.event("stop_requested")
            control.request_drain(_REASON)
        return progress.early_outcome(_REASON) if self.streamed else Outcome("timed_out", stop_reason=_REASON)

    def _with_thread(self, answer: Callable[[], Outcome], deadline: Deadline) -> Outcome:
        return in_daemon_thread(answer, "docmind-hard-timeout").result(timeout=max(0.0, deadline.remaining()))

    def _with_pool(self, answer: Callable[[], Outcome], deadline: Deadline) -> Outcome:
        context = contextvars.copy_context()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="docmind-naive-timeout") as pool:
            return pool.submit(context.run, answer).result(timeout=max(0.0, deadline.remaining()))
