"""The deadline in A2A messages: an interceptor that sends it, and an executor that puts it in force.

    client = ClientFactory(config).create(card, interceptors=[DeadlineInterceptor()])
    handler = DefaultRequestHandler(agent_executor=DeadlineExecutor(MyExecutor(), at_most_s=20), ...)

Needs the package a2a-sdk, which comes with the extra `peers`.
"""

from __future__ import annotations

import contextlib

from a2a.client.interceptors import AfterArgs, BeforeArgs, ClientCallInterceptor
from a2a.helpers.proto_helpers import new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    Message,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

from docmind_lab.alternatives.enforcement.wire.request import request_deadline
from docmind_lab.alternatives.enforcement.wire.server_limits import (
    METADATA_KEY,
    ServerLimits,
    read_metadata_s,
    remaining_metadata,
)
from docmind_lab.core.errors import BudgetRefused, DeadlineError

_OVER = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
    }
)


class DeadlineInterceptor(ClientCallInterceptor):
    """Write the time that is left into the metadata of each message that a client of the A2A SDK sends.

    Outside every deadline messages are sent as they are.
    """

    async def before(self, args: BeforeArgs) -> None:
        """Add the time left to a copy of the message, so that the caller's own can be sent again."""
        if isinstance(args.input, SendMessageRequest):
            request = SendMessageRequest()
            request.CopyFrom(args.input)
            request.message.metadata.update(remaining_metadata(_entry(request.message)))
            args.input = request

    async def after(self, args: AfterArgs) -> None:
        """Leave the result as it is."""


class DeadlineExecutor(AgentExecutor):
    """Hold each task of an agent to the smaller of what its message says and what the agent allows.

    A task that cannot be met is rejected before the agent sees it; one that the deadline cuts is failed, with a
    message that says so. A task that a client cancels ends as the agent's own executor ends it.

    Args:
        executor: The agent's own executor.
        at_most_s: Seconds that a task may take; None for what its message says only.
        transit_s: Seconds taken off what the message says, for the way here and back.
        least_s: Seconds that a task needs at least.

    Raises:
        ConfigurationError: A value cannot be used.
    """

    def __init__(
        self,
        executor: AgentExecutor,
        *,
        at_most_s: float | None = None,
        transit_s: float = 0.0,
        least_s: float = ServerLimits.least_s,
    ) -> None:
        self._executor = executor
        self._limits = ServerLimits(at_most_s, transit_s, least_s)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Run the agent's executor under the deadline of the message."""
        came_s = read_metadata_s(_entry(context.message))
        label = f"task {context.task_id}"
        noted = _NotingQueue(event_queue, has_task=context.current_task is not None)
        try:
            limit_s = self._limits.admitted_s(came_s, label)
        except BudgetRefused as error:
            await _end(context, noted, TaskState.TASK_STATE_REJECTED, error)
            return
        try:
            async with contextlib.nullcontext() if limit_s is None else request_deadline(limit_s, label=label):
                await self._executor.execute(context, noted)
        except DeadlineError as error:
            await _end(context, noted, TaskState.TASK_STATE_FAILED, error)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel the task as the agent's executor does."""
        await self._executor.cancel(context, event_queue)


def _entry(message: Message | None) -> dict[str, object]:
    """Return what the metadata of a message has under the key of the deadline, alone."""
    if message is None or METADATA_KEY not in message.metadata:
        return {}
    return {METADATA_KEY: message.metadata[METADATA_KEY]}


async def _end(context: RequestContext, queue: _NotingQueue, state: TaskState, error: DeadlineError) -> None:
    """End the task in a state with the error as its reason, unless it is over already."""
    if queue.is_over:
        return
    task_id, context_id = str(context.task_id), str(context.context_id)
    if not queue.has_task:
        submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await queue.enqueue_event(Task(id=task_id, context_id=context_id, status=submitted))
    updater = TaskUpdater(queue, task_id, context_id)
    await updater.update_status(state, updater.new_agent_message([new_text_part(str(error))]))


class _NotingQueue(EventQueue):
    """The queue of a task, and what has gone through it: a task ends once, and only a task that exists can end."""

    def __init__(self, queue: EventQueue, *, has_task: bool) -> None:
        self._queue = queue
        self.has_task, self.is_over = has_task, False

    async def enqueue_event(self, event: Message | Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> None:
        """Hand an event on."""
        await self._queue.enqueue_event(event)
        self.has_task = self.has_task or isinstance(event, Task)
        if isinstance(event, Task | TaskStatusUpdateEvent):
            self.is_over = event.status.state in _OVER
        elif isinstance(event, Message):
            # An agent that answers with a message has no task.
            self.is_over = True
