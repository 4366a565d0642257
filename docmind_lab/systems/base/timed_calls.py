"""One model call under the time policies in force: its second request, what its model is told, and its tools."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import SystemMessage

from docmind_lab.core.budgets import current_meter
from docmind_lab.core.deadlines import Deadline, current_policy
from docmind_lab.core.errors import BudgetError
from docmind_lab.core.sync_async import Operation
from docmind_lab.core.time_policies import TimePolicies, time_left_line
from docmind_lab.network.recorder import current_recorder, note_event
from docmind_lab.systems.base.hedged_calls import Race, hedged

_ANSWERING_BY_TOOL: Final = frozenset({"router", "planner", "validation"})
"""Roles whose tool is how they answer, so it stays when little time is left."""


def winds_down(deadline: Deadline) -> bool:
    """Return whether so little time is left that the policy in force takes the tools away."""
    policy = current_policy().policies.wind_down
    return policy is not None and deadline.remaining() < policy.share * deadline.limit_s


def note_wound_down(role: str, deadline: Deadline) -> None:
    """Record that tools were taken away, or that no further search begins. deadline: of the run."""
    note_event("wound_down", role, left_s=deadline.remaining())


@dataclass(frozen=True)
class TimedCall:
    """The attempts of one model call under the time policies; none for a call that no deadline reaches."""

    role: str
    policies: TimePolicies
    deadline: Deadline | None = None

    def prepared(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return the request with what its model is told of the time left, and without tools when little is left."""
        deadline, aware = self.deadline, self.policies.aware
        if deadline is None:
            return request
        if request.tools and self.role not in _ANSWERING_BY_TOOL and winds_down(deadline):
            note_wound_down(self.role, deadline)
            request = request.override(tools=[], tool_choice=None)
        line = "" if aware is None else time_left_line(deadline.remaining(), deadline.limit_s)
        if not line:
            return request
        prompt = "" if request.system_message is None else f"{request.system_message.text}\n\n"
        return request.override(system_message=SystemMessage(prompt + line))

    def hedged(self, call: Operation) -> Operation:
        """Return the operation of an attempt, with its second request if there may be one."""
        hedge = self.policies.hedge
        wait_s = math.inf if hedge is None else hedge.after_s
        return hedged(call, wait_s, Race(lambda: self._admits_second(wait_s)))

    def _admits_second(self, after_s: float) -> bool:
        meter, recorder = current_meter(), current_recorder()
        try:
            if meter is not None:
                meter.admit(self.role, "middleware")
        except BudgetError:
            return False
        if recorder is not None:
            recorder.event("hedged", self.role, kind="llm", after_s=after_s)
        return True
