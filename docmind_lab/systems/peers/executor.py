"""One task of a peer, run by the A2A SDK: work for as long as the task's course says, then an answer.

The answer is made of the passages that the peer is sent; nothing is looked up elsewhere. A cancelled task ends where it
is, unless its course ignores cancels: it then works on to its end and answers, late, and the request that asked for the
cancel gets no reply before that.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from a2a.helpers.proto_helpers import get_data_parts, new_data_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Task, TaskState, TaskStatus

from docmind_lab.services.hosted_behaviour import PeerBehaviour, PeerCourse
from docmind_lab.services.hosts import PeerExchange
from docmind_lab.services.log import RowOutcome
from docmind_lab.services.scripted_model.conversation import Document
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer

ANSWER = "answer"
"""Name and id of the artifact that holds a peer's answer."""

EXCHANGE = "docmind_lab.exchange"
"""Where a call's context has the request that the task is for."""

# Waiting for ever is done in bounded steps, so that the loop's timer arithmetic stays finite.
_LONGEST_WAIT_S = 3600.0
# What rounding leaves of a wait that is over.
_NOTHING_S = 1e-9


class PeerExecutor(AgentExecutor):
    """Executes the tasks of all peers of a service."""

    def __init__(self, behaviour: PeerBehaviour) -> None:
        self._behaviour = behaviour
        self._courses: dict[str, PeerCourse] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Work on a task until it is answered or cancelled."""
        exchange: PeerExchange = context.call_context.state[EXCHANGE]
        task_id, context_id = str(context.task_id), str(context.context_id)
        course = self._courses[task_id] = self._behaviour.course(exchange.key)
        exchange.begin_work(task_id)
        outcome: RowOutcome = "error"
        try:
            # The id of the task is its server's: a caller who is to cancel it must hear of it at once.
            submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=submitted))
            await self._answer(context, TaskUpdater(event_queue, task_id, context_id), course, exchange)
            outcome = "ok"
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            del self._courses[task_id]
            exchange.end_work(outcome)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Report a task as cancelled; do nothing if the task ignores cancels."""
        course = self._courses.get(str(context.task_id))
        if course is not None and course.ignores_cancel:
            return
        skew_s = 0.0 if course is None else course.clock_skew_s
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        await updater.update_status(TaskState.TASK_STATE_CANCELED, timestamp=_calendar(skew_s))

    async def _answer(
        self, context: RequestContext, updater: TaskUpdater, course: PeerCourse, exchange: PeerExchange
    ) -> None:
        await self._sign_of_life(updater, course)
        left_s = course.work_s
        if course.heartbeat_s is not None:
            while left_s > course.heartbeat_s:
                await _work(course.heartbeat_s, course, exchange)
                left_s -= course.heartbeat_s
                if not math.isinf(course.work_s):
                    await self._sign_of_life(updater, course)
        await _work(left_s, course, exchange)
        parts = get_data_parts(context.message.parts) if context.message is not None else []
        answer = answer_task(parts[0] if parts and isinstance(parts[0], dict) else {})
        for _ in range(2 if course.answers_twice else 1):
            await updater.add_artifact([new_data_part(answer)], artifact_id=ANSWER, name=ANSWER, last_chunk=True)
        await updater.update_status(TaskState.TASK_STATE_COMPLETED, timestamp=_calendar(course.clock_skew_s))

    async def _sign_of_life(self, updater: TaskUpdater, course: PeerCourse) -> None:
        await updater.update_status(TaskState.TASK_STATE_WORKING, timestamp=_calendar(course.clock_skew_s))


async def _work(seconds: float, course: PeerCourse, exchange: PeerExchange) -> None:
    """Work for so many seconds; through cancels, if the course says so and the run is not over."""
    clock = asyncio.get_running_loop().time
    ends_at = clock() + seconds
    while (left_s := ends_at - clock()) > _NOTHING_S:
        try:
            await asyncio.sleep(min(left_s, _LONGEST_WAIT_S))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if exchange.cut or not course.ignores_cancel or task is None:
                raise
            task.uncancel()


def _calendar(skew_s: float) -> str:
    """Return the time of day on the peer's clock, which may be wrong."""
    return (datetime.now(UTC) + timedelta(seconds=skew_s)).isoformat()


def answer_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a task from its passages: {"statement": sentences with citations, "ids": the cited passages}; else empty.

    task: {"question": text, "passages": [{"id", "content"}, …]}; anything else is ignored, anything missing is empty.
    """
    passages = [
        Document(str(passage["id"]), str(passage["content"]))
        for passage in _as_list(task.get("passages"))
        if isinstance(passage, Mapping) and passage.get("id") and passage.get("content")
    ]
    statement = extract_answer(str(task.get("question", "")), passages)
    if statement == NOT_FOUND:
        return {"statement": "", "ids": []}
    return {"statement": statement, "ids": [p.id for p in passages if f"[{p.id}]" in statement]}


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
