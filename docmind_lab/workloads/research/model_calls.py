"""A model call of the loop: tried again when it times out, asked once more when it decides nothing.

Attempts after the first are ours and never past the budget; the client makes none of its own. With a propagated
deadline the call path already retries what is not a timeout within it, so only timeouts are left to this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
import openai
from langchain_core.messages import HumanMessage

from docmind_lab.core.deadlines import Deadline, current_policy
from docmind_lab.docmind.graphs.model_client import Asking
from docmind_lab.docmind.graphs.sync_async import Steps, pause
from docmind_lab.network.recorder import current_recorder
from docmind_lab.workloads.research.decisions import MalformedDecision
from docmind_lab.workloads.research.ledger import ResearchLedger
from docmind_lab.workloads.research.prompts import PROMPTS

Decided = TypeVar("Decided")

_TIMEOUTS = (openai.APITimeoutError, httpx2.TimeoutException)
_TRANSIENT = (
    openai.RateLimitError,
    openai.InternalServerError,
    openai.APIConnectionError,
    json.JSONDecodeError,
    httpx2.TransportError,
)
MODEL_FAILURES = (openai.OpenAIError, json.JSONDecodeError, httpx2.HTTPError)
"""What a model call may fail with; a budget that is used up is raised as `BudgetError` instead."""

_FIRST_BACKOFF_S = 0.5  # as the openai client's own first wait


@dataclass(frozen=True)
class CallPlace:
    """Where in the run a call is made: the deadline that was handed down, and which hypothesis and source it is for.

    state: as the call path reads it, with `deadline_ts` if there is one.
    """

    state: Mapping[str, Any]
    ledger: ResearchLedger

    def budget_left_s(self) -> float:
        """Seconds until the earlier of the research budget's end and the propagated deadline."""
        deadline = Deadline.from_state(self.state)
        own_s = self.ledger.budget_left_s()
        return own_s if deadline is None else min(own_s, deadline.remaining() - current_policy().floor_s)

    def budget_over(self) -> bool:
        """Whether nothing new may start."""
        return self.budget_left_s() <= 0


def reply_of(asking: Asking, given: str, place: CallPlace, retries: int) -> Steps[str]:
    """The text of the model's reply to `given` in the role of `asking`.

    retries: attempts after the first. Raises one of `MODEL_FAILURES` when they are used up or would come after the
    budget, and what a propagated deadline raises.
    """
    role = asking.calls.role
    propagated = Deadline.from_state(place.state) is not None
    retried = _TIMEOUTS if propagated else (*_TIMEOUTS, *_TRANSIENT)
    attempt = 0
    while True:
        attempt += 1
        try:
            message = yield asking.ask([HumanMessage(given)], place.state, system=PROMPTS[role])
        except retried as error:
            wait_s = _wait_s(error, attempt)
            if attempt > retries or wait_s >= place.budget_left_s():
                raise
            recorder = current_recorder()
            if recorder is not None:
                recorder.event("retry", role, kind="llm", attempt=attempt, wait_s=wait_s)
            yield pause(wait_s)
        else:
            return str(message.text)


def _wait_s(error: Exception, attempt: int) -> float:
    """Seconds until the next attempt: what the server asks for, else twice as long each time."""
    response = getattr(error, "response", None)
    asked = response.headers.get("retry-after", "") if response is not None else ""
    try:
        return max(0.0, float(asked))
    except ValueError:
        return float(_FIRST_BACKOFF_S * 2 ** (attempt - 1))


def decided(
    asking: Asking, given: str, read: Callable[[str], Decided], place: CallPlace, retries: int
) -> Steps[Decided]:
    """What `read` makes of the model's reply, which gets one more chance after a malformed one.

    Raises: MalformedDecision for the second, or for the first if the budget is over by then; else as `reply_of`.
    """
    reply = yield from reply_of(asking, given, place, retries)
    try:
        return read(reply)
    except MalformedDecision:
        if place.budget_over():
            raise
    recorder = current_recorder()
    if recorder is not None:
        recorder.event("malformed_decision", asking.calls.role)
    reply = yield from reply_of(asking, given, place, retries)
    return read(reply)
