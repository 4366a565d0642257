"""The deadline in A2A messages, with the SDK's own client and server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_message_text, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from served_in_loop import served
from starlette.applications import Starlette

from docmind_lab.alternatives.enforcement.scope import deadline, remaining_s
from docmind_lab.alternatives.enforcement.wire.a2a import DeadlineExecutor, DeadlineInterceptor
from docmind_lab.alternatives.enforcement.wire.server_limits import METADATA_KEY

# A busy machine between the message and the executor, or between the deadline and the end of the task.
BUSY_S = 3.0


class Agent(AgentExecutor):
    """An agent that says how long it has, works for some seconds and answers."""

    def __init__(self, work_s: float = 0.0, *, has_task: bool = True, answers_first: bool = False) -> None:
        self._work_s, self._has_task, self._answers_first = work_s, has_task, answers_first
        self.remaining_s: list[float | None] = []
        self.metadata: list[dict[str, Any]] = []
        self.ended: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.remaining_s.append(remaining_s())
        assert context.message is not None
        self.metadata.append(dict(context.message.metadata.items()))
        updater = TaskUpdater(event_queue, str(context.task_id), str(context.context_id))
        if self._has_task:
            submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=str(context.task_id), context_id=str(context.context_id), status=submitted)
            )
            await updater.start_work()
        if self._answers_first:
            await updater.complete()
        try:
            await asyncio.sleep(self._work_s)
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("done")
        if self._has_task and not self._answers_first:
            await updater.add_artifact([new_text_part("an answer")], name="answer")
            await updater.complete()
        elif not self._has_task:
            await event_queue.enqueue_event(new_text_message("an answer", role=Role.ROLE_AGENT))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, str(context.task_id), str(context.context_id)).cancel()


@contextlib.asynccontextmanager
async def clients(executor: AgentExecutor, *, streaming: bool = True) -> AsyncIterator[Client]:
    """A client that sends deadlines to an agent behind a socket."""
    card = AgentCard(name="agent", version="1", capabilities=AgentCapabilities(streaming=True))
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    async with (
        served(Starlette(routes=create_jsonrpc_routes(handler, "/"))) as url,
        httpx.AsyncClient(trust_env=False, timeout=30) as http,
    ):
        at = AgentInterface(protocol_binding="JSONRPC", url=f"{url}/", protocol_version="1.0")
        card.supported_interfaces.append(at)
        factory = ClientFactory(ClientConfig(httpx_client=http, streaming=streaming))
        try:
            yield factory.create(card, [DeadlineInterceptor()])
        finally:
            await handler.aclose()


def message(**metadata: object) -> SendMessageRequest:
    request = SendMessageRequest(message=new_text_message("work", role=Role.ROLE_USER))
    request.message.metadata.update(metadata)
    return request


def with_left(milliseconds: object) -> SendMessageRequest:
    request = message()
    request.message.metadata.update({METADATA_KEY: milliseconds})
    return request


async def answers(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    return [event async for event in client.send_message(request)]


def run(
    executor: AgentExecutor, request: SendMessageRequest, *, streaming: bool = True, limit_s: float | None = None
) -> list[StreamResponse]:
    """Send one message, perhaps under a deadline, and return what came back."""

    async def main() -> list[StreamResponse]:
        async with clients(executor, streaming=streaming) as client:
            if limit_s is None:
                return await answers(client, request)
            async with deadline(limit_s):
                return await answers(client, request)

    return asyncio.run(asyncio.wait_for(main(), 20))


def end_of(events: list[StreamResponse]) -> tuple[str, str]:
    """The state of the task at its end, and the text of its status."""
    last = events[-1]
    status = last.task.status if last.HasField("task") else last.status_update.status
    return TaskState.Name(status.state), get_message_text(status.message)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_message_carries_the_time_left_and_the_executor_puts_it_in_force(streaming: bool) -> None:
    agent = Agent()
    run(DeadlineExecutor(agent), message(topic="x"), streaming=streaming, limit_s=20)
    ((sent,), (seconds,)) = agent.metadata, agent.remaining_s
    assert sent["topic"] == "x"
    assert 20_000 - 1000 * BUSY_S < sent[METADATA_KEY] <= 20_000
    assert seconds is not None
    assert 20 - 2 * BUSY_S < seconds <= 20


def test_a_deadline_that_the_message_has_already_stays_if_it_is_nearer() -> None:
    agent = Agent()
    request = with_left(700)
    run(agent, request, limit_s=20)
    assert agent.metadata[0][METADATA_KEY] == 700
    far = with_left(90_000)
    run(agent, far, limit_s=20)
    assert agent.metadata[1][METADATA_KEY] <= 20_000
    # The caller's own message is not changed: sent again, it has a new duration.
    assert far.message.metadata[METADATA_KEY] == 90_000


def test_outside_every_deadline_a_message_is_sent_as_it_is() -> None:
    agent = Agent()
    run(DeadlineExecutor(agent), message(topic="x"))
    assert agent.metadata == [{"topic": "x"}]
    assert agent.remaining_s == [None]


@pytest.mark.parametrize("streaming", [True, False])
def test_what_cannot_be_met_is_rejected_and_the_agent_never_sees_it(streaming: bool) -> None:
    agent = Agent()
    state, text = end_of(run(DeadlineExecutor(agent, transit_s=1), with_left(900), streaming=streaming))
    assert state == "TASK_STATE_REJECTED"
    assert "refused, because its caller waits for" in text
    assert agent.remaining_s == []


@pytest.mark.wall
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("has_task", [True, False])
def test_a_task_that_the_deadline_cuts_is_cancelled_and_fails_with_the_reason(streaming: bool, has_task: bool) -> None:
    agent = Agent(work_s=30, has_task=has_task)
    begun_s = time.monotonic()
    state, text = end_of(run(DeadlineExecutor(agent), with_left(60), streaming=streaming))
    assert time.monotonic() - begun_s < 0.06 + BUSY_S
    assert state == "TASK_STATE_FAILED"
    assert "deadline" in text
    assert agent.ended == ["cancelled"]


@pytest.mark.wall
def test_a_task_that_was_over_before_the_deadline_stays_as_it_ended() -> None:
    agent = Agent(work_s=30, answers_first=True)
    assert end_of(run(DeadlineExecutor(agent), with_left(60)))[0] == "TASK_STATE_COMPLETED"


def test_an_agent_that_answers_with_a_message_is_left_alone() -> None:
    (event,) = run(DeadlineExecutor(Agent(has_task=False), at_most_s=20), message())
    assert get_message_text(event.message) == "an answer"


def test_a_cancel_reaches_the_agents_own_executor() -> None:
    agent = Agent(work_s=30)

    async def main() -> list[StreamResponse]:
        async with clients(DeadlineExecutor(agent, at_most_s=20)) as client:
            events = []
            async for event in client.send_message(message()):
                if event.HasField("task"):
                    await client.cancel_task(CancelTaskRequest(id=event.task.id))
                events.append(event)
            return events

    assert end_of(asyncio.run(asyncio.wait_for(main(), 20)))[0] == "TASK_STATE_CANCELED"
    assert agent.ended == ["cancelled"]


class Delegates(Agent):
    """An agent that hands its task on to another one and notes what that one says."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        super().__init__()
        self._ask = ask
        self.events: list[StreamResponse] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.events = await self._ask()
        await super().execute(context, event_queue)


def test_the_time_left_goes_on_from_agent_to_agent_and_only_shrinks() -> None:
    last = Agent()

    async def main() -> Delegates:
        async with clients(DeadlineExecutor(last, at_most_s=60)) as to_last:
            middle = Delegates(lambda: answers(to_last, message()))
            async with clients(DeadlineExecutor(middle, at_most_s=60, transit_s=0.5)) as to_middle:
                await answers(to_middle, with_left(9000))
        return middle

    middle = asyncio.run(asyncio.wait_for(main(), 20))
    assert end_of(middle.events)[0] == "TASK_STATE_COMPLETED"
    (sent,) = [metadata[METADATA_KEY] for metadata in last.metadata]
    assert 8500 - 1000 * BUSY_S < sent <= 8500
