"""Google ADK: `runner.run_async`, and its argument `abort_signal`."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.runners import InMemoryRunner, Runner
from google.genai.types import UserContent

from docmind_lab.workloads.agents.agent import Agent, NativeTimeout, NativeTimeoutReached

_USER = "docmind-lab"


def adapt(found: Any, reference: str) -> Agent:
    """Return an agent or a runner of Google ADK as an agent of the lab; each question has a session of its own."""
    runner = found if isinstance(found, Runner) else InMemoryRunner(agent=found, app_name="docmind_lab")

    async def call(question: str, **options: Any) -> Any:
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id=_USER)
        text = ""
        async for event in runner.run_async(
            user_id=_USER, session_id=session.id, new_message=UserContent(question), **options
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
    name = reference or str(getattr(found, "name", "") or runner.app_name)
    return Agent(name, call, is_async=True, framework="Google ADK", native=native)
