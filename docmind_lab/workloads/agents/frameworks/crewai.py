"""CrewAI: `crew.kickoff`, and `Agent(max_execution_time=…)` as its own timeout."""

from __future__ import annotations

import math
from typing import Any

from docmind_lab.workloads.agents.agent import Agent, NativeTimeout, NativeTimeoutReached


def adapt(found: Any, reference: str) -> Agent:
    """Return a crew as an agent of the lab. Its tasks read the question as `{question}`."""

    def call(question: str, **options: Any) -> Any:
        return found.kickoff(inputs={"question": question, **options})

    def call_within(seconds: float, question: str, **options: Any) -> Any:
        before = [(one, one.max_execution_time) for one in found.agents]
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
    return Agent(reference or found.name or "crew", call, is_async=False, framework="CrewAI", native=native)
