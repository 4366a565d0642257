"""Whether a run's deadline travels with it: an option of every alternative, however it enforces the deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langgraph.runtime import RunControl
from langgraph.types import Command

from docmind_lab.alternatives.base import STREAM_MODES, Inputs, Runnable, RunProgress
from docmind_lab.core.call_history import current_history
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, PropagationPolicy, policy_scope
from docmind_lab.core.errors import NotAdmitted
from docmind_lab.core.levels import NOT_ADMITTED
from docmind_lab.network.recorder import current_recorder


def with_deadline_in_input(inputs: Inputs, deadline: Deadline) -> Mapping[str, Any] | Command[Any]:
    """Return the input with the deadline added; for a run that continues from a checkpoint, as a state update."""
    if inputs is None:
        return Command(update={DEADLINE_KEY: deadline.at_s})
    return {**inputs, DEADLINE_KEY: deadline.at_s}


def _do_nothing() -> None:
    """Nothing happens between two steps."""


def drain_once_passed(control: RunControl, deadline: Deadline) -> Callable[[], None]:
    """Return a function to call between steps, which drains the run once the deadline has passed.

    It ends the run only if a step is left: a finished answer is delivered, not thrown away.
    """

    def check() -> None:
        if deadline.passed():
            control.request_drain("deadline")

    return check


def _carries_deadline(runnable: Runnable) -> bool:
    """Whether the deadline reaches the graph's code by itself, and has no place in the graph's input."""
    doorways = getattr(runnable, "binding", {}).get("doorways", ())
    return any(getattr(doorway, "carries_deadline", False) for doorway in doorways)


def with_deadline_in_config(runnable: Runnable, deadline: Deadline) -> Runnable:
    """Return the graph with the deadline added to its configuration.

    A checkpoint may hold agents that wait to be started with the deadline of the run that was interrupted; what the
    configuration says takes its place.
    """
    return runnable.with_config({"configurable": {DEADLINE_KEY: deadline.at_s}})


class Propagation:
    """The base class of alternatives with the options `propagate` and `policy`.

    With `propagate`, the graph's state carries the deadline, the policy caps each call by what is left of it, and
    retries are ours, within the budget. Without, no call knows of a deadline, and retries are left to the clients.
    """

    propagate: bool
    policy: PropagationPolicy

    @property
    def propagates(self) -> bool:
        """Whether the deadline travels with the run."""
        return self.propagate

    @property
    def client_retries(self) -> bool:
        """Whether retries are left to the model's client."""
        return not self.propagate

    def _with_deadline(self, runnable: Runnable, deadline: Deadline) -> Runnable:
        if not self.propagate or _carries_deadline(runnable):
            return runnable
        return with_deadline_in_config(runnable, deadline)

    def _inputs(self, runnable: Runnable, inputs: Inputs, deadline: Deadline) -> Inputs | Command[Any]:
        if not self.propagate or _carries_deadline(runnable):
            return inputs
        return with_deadline_in_input(inputs, deadline)

    def _stream(
        self, runnable: Runnable, inputs: Inputs, deadline: Deadline, progress: RunProgress, **options: Any
    ) -> None:
        """Stream the graph to its end in the calling thread. options: of the graph's `stream`, and `between_steps`."""
        between_steps = options.pop("between_steps", _do_nothing)
        with self._policy_in_force(deadline):
            chunks = self._with_deadline(runnable, deadline).stream(
                self._inputs(runnable, inputs, deadline), stream_mode=STREAM_MODES, **options
            )
            for chunk in chunks:
                if progress.show(chunk):
                    between_steps()

    async def _stream_async(
        self, runnable: Runnable, inputs: Inputs, deadline: Deadline, progress: RunProgress, **options: Any
    ) -> None:
        """Stream the graph to its end on the calling loop, otherwise as `_stream`."""
        between_steps = options.pop("between_steps", _do_nothing)
        with self._policy_in_force(deadline):
            chunks = self._with_deadline(runnable, deadline).astream(
                self._inputs(runnable, inputs, deadline), stream_mode=STREAM_MODES, **options
            )
            async for chunk in chunks:
                if progress.show(chunk):
                    between_steps()

    @contextlib.contextmanager
    def _admitted(self, deadline: Deadline) -> Iterator[None]:
        """Apply the policy around a run that it may refuse before it begins. Raises: NotAdmitted."""
        with policy_scope(self.policy, deadline), _counted(self.policy, deadline):
            yield

    def _policy_in_force(self, deadline: Deadline) -> contextlib.AbstractContextManager[None]:
        """Return what applies the policy around the graph's run, in the thread or task that runs the graph.

        Its block raises NotAdmitted where the policy refuses the run before it begins.
        """
        refuses = self.policy.policies.admission is not None
        return self._admitted(deadline) if refuses else policy_scope(self.policy, deadline)


@contextlib.contextmanager
def _counted(policy: PropagationPolicy, deadline: Deadline) -> Iterator[None]:
    """Count a query that is under way, and remember whether it ended in time. Raises: NotAdmitted."""
    admission, history = policy.policies.admission, current_history()
    assert admission is not None, "only a policy that refuses runs counts them"
    assert history is not None, "a policy in force has a history"
    queries, recorder = history.queries, current_recorder()
    likely = queries.likely_in_time()
    if likely is not None and likely < admission.share:
        if recorder is not None:
            recorder.event(NOT_ADMITTED, under_way=queries.count, in_time=likely)
        raise NotAdmitted(
            f"the query was refused: {likely:.0%} of earlier ones beside about as many were in time, and the policy "
            f"asks for {admission.share:.0%}",
            role="",
            source="admission",
        )
    beside, was_in_time = queries.begin(), False
    try:
        yield
        was_in_time = deadline.remaining() > policy.floor_s
    finally:
        queries.end(beside, was_in_time=was_in_time)
