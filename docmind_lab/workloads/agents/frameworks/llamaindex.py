"""LlamaIndex: `run` of an agent or a workflow, and `handler.cancel_run()` by a timer as its own timeout."""

from __future__ import annotations

import asyncio
from typing import Any

from workflows.errors import WorkflowCancelledByUser, WorkflowTimeoutError
from workflows.events import StartEvent

from docmind_lab.workloads.agents.agent import Agent, NativeTimeout, NativeTimeoutReached

# What agents of LlamaIndex call a question.
_USER_MESSAGE = "user_msg"


def adapt(found: Any, reference: str) -> Agent:
    """Return an agent or a workflow of LlamaIndex as an agent of the lab.

    An agent gets the question as `user_msg`; a workflow whose start event has one field that must be given, as that;
    any other, as `question`. `Workflow(timeout=…)` stays as it is: it is fixed when the workflow is made.
    """
    key = _question_key(found)

    async def call(question: str, **options: Any) -> Any:
        return await found.run(**{key: question}, **options)

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        handler = found.run(**{key: question}, **options)
        cancelling: list[asyncio.Task[None]] = []
        timer = asyncio.get_running_loop().call_later(
            seconds, lambda: cancelling.append(asyncio.ensure_future(handler.cancel_run()))
        )
        try:
            return await handler
        except (WorkflowCancelledByUser, WorkflowTimeoutError) as error:
            raise NativeTimeoutReached from error
        finally:
            timer.cancel()

    native = NativeTimeout("handler.cancel_run() by a timer", call_within)
    name = reference or str(getattr(found, "name", "") or type(found).__name__)
    return Agent(name, call, is_async=True, framework="LlamaIndex", native=native)


def _question_key(workflow: Any) -> str:
    event = workflow.start_event_class
    if hasattr(type(workflow), "model_fields") or hasattr(workflow, "root_agent"):
        return _USER_MESSAGE
    if event is StartEvent:
        return "question"
    needed = [name for name, one in event.model_fields.items() if one.is_required()]
    return needed[0] if len(needed) == 1 else "question"
