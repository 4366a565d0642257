"""smolagents: `agent.run`, and `agent.interrupt()` by a timer as its own timeout."""

from __future__ import annotations

import threading
from typing import Any

from smolagents import LogLevel
from smolagents.utils import AgentError

from docmind_lab.workloads.agents.agent import Agent, NativeTimeout, NativeTimeoutReached


def adapt(found: Any, reference: str) -> Agent:
    """Return an agent of smolagents as an agent of the lab. It prints its steps no longer."""
    found.logger.level = LogLevel.OFF

    def call(question: str, **options: Any) -> Any:
        return found.run(question, **options)

    def call_within(seconds: float, question: str, **options: Any) -> Any:
        timer = threading.Timer(seconds, found.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return found.run(question, **options)
        except AgentError as error:
            if found.interrupt_switch:
                raise NativeTimeoutReached from error
            raise
        finally:
            timer.cancel()

    native = NativeTimeout("agent.interrupt() by a timer", call_within)
    name = reference or found.name or type(found).__name__
    return Agent(name, call, is_async=False, framework="smolagents", native=native)
