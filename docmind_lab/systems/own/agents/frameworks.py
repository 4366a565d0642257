"""Adapters, one for each framework: its object as an `Agent`, with what its own timeout of a whole run is.

An adapter is called when an object of its framework is there, so none imports a framework by itself.
"""

# ruff: noqa: PLC0415 - each framework is imported where an object of it is there

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from docmind_lab.systems.own.agents.agent import Agent, NativeTimeout, NativeTimeoutReached


def _of_openai_agents(agent: Any, reference: str) -> Agent:
    """Return an `agents.Agent` as an agent of the lab. Its tracing is off: nothing leaves while it is measured."""
    from agents import RunConfig, Runner

    def untraced(options: dict[str, Any]) -> dict[str, Any]:
        return {"run_config": RunConfig(tracing_disabled=True), **options}

    async def call(question: str, **options: Any) -> Any:
        return await Runner.run(agent, question, **untraced(options))

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        result = Runner.run_streamed(agent, question, **untraced(options))
        timer = asyncio.get_running_loop().call_later(seconds, result.cancel)
        try:
            async for _ in result.stream_events():
                pass
        finally:
            timer.cancel()
        if result.final_output is None:
            raise NativeTimeoutReached
        return result

    native = NativeTimeout("result.cancel() by a timer, with Runner.run_streamed", call_within)
    return Agent(reference or agent.name, call, is_async=True, framework="OpenAI Agents SDK", native=native)


def _of_pydantic_ai(agent: Any, reference: str) -> Agent:
    from pydantic_ai.exceptions import RunTimedOut

    async def call(question: str, **options: Any) -> Any:
        return await agent.run(question, **options)

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        try:
            return await agent.run(question, timeout=seconds, **options)
        except RunTimedOut as error:
            raise NativeTimeoutReached from error

    native = NativeTimeout("agent.run(timeout=…)", call_within)
    return Agent(reference or agent.name or "agent", call, is_async=True, framework="pydantic-ai", native=native)


def _of_llamaindex(workflow: Any, reference: str) -> Agent:
    """Return an agent or a workflow of LlamaIndex as an agent of the lab.

    An agent gets the question as `user_msg`; a workflow whose start event has one field that must be given, as that;
    any other, as `question`. `Workflow(timeout=…)` stays as it is: it is fixed when the workflow is made.
    """
    from workflows.errors import WorkflowCancelledByUser, WorkflowTimeoutError
    from workflows.events import StartEvent

    key = "question"
    if hasattr(type(workflow), "model_fields") or hasattr(workflow, "root_agent"):
        key = "user_msg"
    elif workflow.start_event_class is not StartEvent:
        needed = [name for name, one in workflow.start_event_class.model_fields.items() if one.is_required()]
        key = needed[0] if len(needed) == 1 else key

    async def call(question: str, **options: Any) -> Any:
        return await workflow.run(**{key: question}, **options)

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        handler = workflow.run(**{key: question}, **options)
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
    name = reference or str(getattr(workflow, "name", "") or type(workflow).__name__)
    return Agent(name, call, is_async=True, framework="LlamaIndex", native=native)


def _of_crewai(crew: Any, reference: str) -> Agent:
    """Return a crew as an agent of the lab. Its tasks read the question as `{question}`."""

    def call(question: str, **options: Any) -> Any:
        return crew.kickoff(inputs={"question": question, **options})

    def call_within(seconds: float, question: str, **options: Any) -> Any:
        before = [(one, one.max_execution_time) for one in crew.agents]
        for one, _ in before:
            # Whole seconds, and at least one: CrewAI takes no others.
            one.max_execution_time = max(1, math.ceil(seconds))
        try:
            return call(question, **options)
        except TimeoutError as error:
            raise NativeTimeoutReached from error
        finally:
            for one, limit_s in before:
                one.max_execution_time = limit_s

    native = NativeTimeout("Agent(max_execution_time=…), whole seconds, of each agent", call_within)
    return Agent(reference or crew.name or "crew", call, is_async=False, framework="CrewAI", native=native)


def _of_ag2(agent: Any, reference: str) -> Agent:
    async def call(question: str, **options: Any) -> Any:
        return (await agent.ask(question, **options)).body

    return Agent(reference or agent.name, call, is_async=True, framework="AG2")


def _of_smolagents(agent: Any, reference: str) -> Agent:
    """Return an agent of smolagents as an agent of the lab. It prints its steps no longer."""
    from smolagents import LogLevel
    from smolagents.utils import AgentError

    agent.logger.level = LogLevel.OFF

    def call(question: str, **options: Any) -> Any:
        return agent.run(question, **options)

    def call_within(seconds: float, question: str, **options: Any) -> Any:
        timer = threading.Timer(seconds, agent.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return agent.run(question, **options)
        except AgentError as error:
            if agent.interrupt_switch:
                raise NativeTimeoutReached from error
            raise
        finally:
            timer.cancel()

    native = NativeTimeout("agent.interrupt() by a timer", call_within)
    name = reference or agent.name or type(agent).__name__
    return Agent(name, call, is_async=False, framework="smolagents", native=native)


def _of_google_adk(agent: Any, reference: str) -> Agent:
    """Return an agent or a runner of Google ADK as an agent of the lab; each question has a session of its own."""
    from google.adk.runners import InMemoryRunner, Runner
    from google.genai.types import UserContent

    runner = agent if isinstance(agent, Runner) else InMemoryRunner(agent=agent, app_name="docmind_lab")

    async def call(question: str, **options: Any) -> Any:
        user = "docmind-lab"
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id=user)
        text = ""
        async for event in runner.run_async(
            user_id=user, session_id=session.id, new_message=UserContent(question), **options
        ):
            if event.error_code:
                raise RuntimeError(f"{event.error_code}: {event.error_message or 'no message'}")
            if event.is_final_response() and event.content and event.content.parts:
                text = "".join(part.text or "" for part in event.content.parts if not part.thought)
        return text

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        aborted = asyncio.Event()
        timer = asyncio.get_running_loop().call_later(seconds, aborted.set)
        try:
            text = await call(question, abort_signal=aborted, **options)
        except Exception as error:
            if aborted.is_set():
                raise NativeTimeoutReached from error
            raise
        finally:
            timer.cancel()
        if aborted.is_set() and not text:
            raise NativeTimeoutReached
        return text

    native = NativeTimeout("runner.run_async(abort_signal=…) by a timer", call_within)
    name = reference or str(getattr(agent, "name", "") or runner.app_name)
    return Agent(name, call, is_async=True, framework="Google ADK", native=native)


FRAMEWORKS: Mapping[str, Callable[[Any, str], Agent]] = MappingProxyType(
    {
        "agents.agent.Agent": _of_openai_agents,
        "pydantic_ai.agent.abstract.AbstractAgent": _of_pydantic_ai,
        "workflows.workflow.Workflow": _of_llamaindex,
        "crewai.crew.Crew": _of_crewai,
        "ag2.agent.Agent": _of_ag2,
        "smolagents.agents.MultiStepAgent": _of_smolagents,
        "google.adk.agents.base_agent.BaseAgent": _of_google_adk,
        "google.adk.runners.Runner": _of_google_adk,
    }
)
"""Class of an object, or a base of it → its adapter. By name, so that no framework is imported that is not loaded."""
