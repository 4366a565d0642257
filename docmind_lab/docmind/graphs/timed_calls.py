"""One model call under the time policies in force.

Its timeout, its hedge, its retries, when it is not started, what its model is told of the time left, and its tools.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import SystemMessage

from docmind_lab.core.budgets import current_meter
from docmind_lab.core.call_history import CallHistory, current_history
from docmind_lab.core.clock import Clock
from docmind_lab.core.deadlines import Deadline, current_policy
from docmind_lab.core.errors import BudgetError, CircuitOpen
from docmind_lab.core.time_left import time_left_line
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.docmind.graphs.hedged_calls import Race, hedged
from docmind_lab.docmind.sync_async import Operation
from docmind_lab.network.recorder import current_recorder, refusal_detail

CIRCUIT: Final = "circuit_breaker"
"""What refuses a call that a circuit breaker does not let through, in the event `refused`."""


_ANSWERING_BY_TOOL: Final = frozenset({"router", "planner", "validation"})
"""Roles whose tool is how they answer, so it stays when little time is left."""


def history_in_force() -> CallHistory:
    """Return the history of the session; one of its own for code outside every run."""
    return current_history() or CallHistory()


def admits_retry(role: str) -> bool:
    """Count a retry, and return whether the budget of retries in force has one left.

    Args:
        role: Who would try again.
    """
    budget = current_policy().policies.retry_budget
    if budget is None or history_in_force().take_retry(budget.share, budget.at_least):
        return True
    recorder = current_recorder()
    if recorder is not None:
        recorder.event("retry_refused", role, kind="llm")
    return False


def winds_down(deadline: Deadline) -> bool:
    """Return whether so little time is left that the policy in force takes the tools away."""
    policy = current_policy().policies.wind_down
    return policy is not None and deadline.remaining() < policy.share * deadline.limit_s


def note_wound_down(role: str, deadline: Deadline) -> None:
    """Record that tools were taken away, or that no further search begins.

    Args:
        role: Whose tools or searches.
        deadline: Of the run.
    """
    recorder = current_recorder()
    if recorder is not None:
        recorder.event("wound_down", role, left_s=deadline.remaining())


@dataclass
class TimedCall:
    """The attempts of one model call, as the time policies have them.

    Args:
        role: Who makes the call.
        policies: The policies; none for a call that no deadline reaches.
        timeouts: The exceptions of an attempt that a timeout has cut.
        clock: What durations are counted on.
        deadline: The run's; None without one.
        timeout_s: The timeout of the attempt under way, seconds; inf for none but the deadline.
    """

    role: str
    policies: TimePolicies
    timeouts: tuple[type[Exception], ...]
    clock: Clock
    deadline: Deadline | None = None
    timeout_s: float = math.inf
    _history: CallHistory = field(default_factory=history_in_force)

    def __post_init__(self) -> None:
        self._history.note_call()

    def begin_attempt(self) -> None:
        """Set the timeout of an attempt. Raises: CircuitOpen if it may not begin, since others have failed."""
        breaker, timeout = self.policies.circuit_breaker, self.policies.call_timeout
        if breaker is not None:
            now_s = self.clock.now()
            if not self._history.take_trial(now_s, now_s + breaker.open_s):
                self._refuse(breaker.failures)
        if timeout is not None:
            self.timeout_s = timeout.timeout_s(self.role, self._history)

    def _refuse(self, failures: int) -> None:
        recorder = current_recorder()
        if recorder is not None:
            recorder.event("refused", self.role, **refusal_detail("llm", CIRCUIT))
        raise CircuitOpen(f"{self.role}: a call was not started, since {failures} calls in a row have failed")

    def prepared(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return the request with what its model is told of the time left, and without tools when little is left.

        Args:
            request: Of the attempt that begins now.
        """
        deadline, aware = self.deadline, self.policies.aware
        if deadline is None:
            return request
        if request.tools and self.role not in _ANSWERING_BY_TOOL and winds_down(deadline):
            note_wound_down(self.role, deadline)
            request = request.override(tools=[], tool_choice=None)
        line = "" if aware is None else time_left_line(aware.style, deadline.remaining(), deadline.limit_s)
        if not line:
            return request
        prompt = "" if request.system_message is None else f"{request.system_message.text}\n\n"
        return request.override(system_message=SystemMessage(prompt + line))

    def hedged(self, call: Operation) -> Operation:
        """Return the operation of an attempt, with its second request if there may be one.

        Args:
            call: Makes one request.
        """
        hedge = self.policies.hedge
        wait_s = math.inf if hedge is None else hedge.wait_s(self.role, self._history)
        race = Race(lambda: self._admits_second(wait_s), self._note_end, self.clock)
        return hedged(call, wait_s, race)

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

    def _note_end(self, seconds: float, error: BaseException | None, has_lost: bool) -> None:
        """Learn from a request that has ended."""
        if error is None or has_lost or isinstance(error, self.timeouts):
            # An answer that came while another one counted took its time all the same.
            self._history.note_attempt(self.role, seconds, was_cut=error is not None)
        breaker = self.policies.circuit_breaker
        # What the deadline cuts says nothing of the server.
        is_cut = has_lost or not isinstance(error, Exception) or (self.deadline is not None and self.deadline.passed())
        if error is None:
            self._history.note_success()
        elif breaker is not None and not is_cut:
            is_open = self._history.note_failure(breaker.failures, self.clock.now() + breaker.open_s)
            recorder = current_recorder()
            if is_open and recorder is not None:
                recorder.event("circuit_opened", self.role, kind="llm", open_s=breaker.open_s)
