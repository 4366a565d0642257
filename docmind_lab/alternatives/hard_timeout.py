"""B: a hard timeout around the coordinator (ADR-056)."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, ClassVar

from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import Inputs, NodeColour, Outcome, Progress, Runnable, run_to_outcome
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.deadlines import Deadline, PropagationPolicy
from docmind_lab.recorder import Recorder


@dataclass(frozen=True)
class HardTimeout(Propagation):
    """The graph runs in a thread; the caller waits for a future, and no longer than the deadline.

    drain_on_timeout: ask the graph to stop at its next step (`RunControl.request_drain`) once the caller has left.
    naive: submit to a `with ThreadPoolExecutor()`, whose exit waits for the thread: the timeout then does nothing
    for the caller. It is a common mistake and is kept to be measured.
    propagate: let the graph know of the deadline, and cap its calls by `policy`.

    A timeout surfaces in the caller, who has nothing but the fact. The graph keeps running to its end, or to the end
    of its step when it is drained: its model calls, its checkpoints, its thread (a daemon one, so that it cannot hold
    the interpreter open). When it propagates, the call under way is cut, and with it the graph ends.
    """

    drain_on_timeout: bool = False
    naive: bool = False
    propagate: bool = False
    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "hard_timeout"
    letter: ClassVar[str] = "B"
    node_colour: ClassVar[NodeColour] = "sync"

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Wait for the graph until the deadline."""

        def answer() -> Outcome:
            progress = Progress()
            with recorder.work("run"):
                return run_to_outcome(progress, lambda: progress.show(invoked()))

        def invoked() -> Any:
            with self._in_force(deadline):
                return self._carried(runnable, deadline).invoke(self._inputs(inputs, deadline), control=control)

        control, context = RunControl(), contextvars.copy_context()
        wait = self._with_pool if self.naive else self._with_thread
        outcome = wait(context, answer, deadline)
        if self.drain_on_timeout and outcome.outcome == "timed_out":
            recorder.event("stop_requested")
            control.request_drain("hard_timeout")
        return outcome

    def _with_thread(self, context: contextvars.Context, answer: Callable[[], Outcome], deadline: Deadline) -> Outcome:
        future: Future[Outcome] = Future()

        def work() -> None:
            try:
                future.set_result(context.run(answer))
            except BaseException as error:  # noqa: BLE001 - handed to the caller, as a pool would
                future.set_exception(error)

        threading.Thread(target=work, name="docmind-hard-timeout", daemon=True).start()
        return _until(future, deadline)

    def _with_pool(self, context: contextvars.Context, answer: Callable[[], Outcome], deadline: Deadline) -> Outcome:
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="docmind-naive-timeout") as pool:
            return _until(pool.submit(context.run, answer), deadline)


def _until(future: Future[Outcome], deadline: Deadline) -> Outcome:
    try:
        return future.result(timeout=max(0.0, deadline.remaining()))
    except FutureTimeoutError:
        return Outcome("timed_out", stop_reason="hard_timeout")
