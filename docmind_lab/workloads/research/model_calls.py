"""Model calls of the research loop: retries within the budget, and the decision read from each reply.

    read_next_query('{"query": "generator return value", "reasoning": "…"}')
    read_saturation('{"decision": "SATURATED", "reasoning": "the last query brought nothing new"}')
    read_accepted('{"accepted": [1, 3], "reasoning": "…"}', of=5)

A reply of any other shape is malformed and decides nothing: above all it is not SATURATED. The model is then asked once
more. Attempts after the first are ours and never past the budget; the client makes none of its own. With a propagated
deadline the call path already retries what is not a timeout within it, so only timeouts are left to this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from langchain_core.messages import HumanMessage

from docmind_lab.core.deadlines import Deadline, current_policy
from docmind_lab.core.errors import DocmindLabError
from docmind_lab.docmind.graphs.model_calls import FIRST_BACKOFF_S, RETRYABLE, TIMEOUTS, retry_after_s
from docmind_lab.docmind.graphs.model_client import ModelClient
from docmind_lab.docmind.graphs.timed_calls import note_wound_down, winds_down
from docmind_lab.docmind.sync_async import Steps, pause
from docmind_lab.network.recorder import current_recorder
from docmind_lab.workloads.research.ledger import ResearchLedger
from docmind_lab.workloads.research.prompts import PROMPTS

_FENCED = re.compile(r"^\s*```(?:json)?\s*\n(?P<inside>.*?)\n?```\s*$", re.DOTALL)
_DECISIONS = ("SATURATED", "CONTINUE")


class MalformedDecision(DocmindLabError):
    """The model's reply has the wrong shape, so it decides nothing; the message says what is wrong with it."""


@dataclass(frozen=True)
class NextQuery:
    """The query to ask next; empty if the model has none."""

    query: str
    reasoning: str


@dataclass(frozen=True)
class Saturation:
    """The model's decision whether a source has nothing more to give, and its reason."""

    decision: Literal["SATURATED", "CONTINUE"]
    reasoning: str


def read_next_query(reply: str) -> NextQuery:
    """Read the next query from the reply. Raises: MalformedDecision."""
    fields = _fields(reply)
    query = fields.get("query")
    if not isinstance(query, str):
        raise MalformedDecision("the reply has no text under 'query'")
    return NextQuery(" ".join(query.split()), _reasoning(fields))


def read_saturation(reply: str) -> Saturation:
    """Read the saturation decision from the reply. Raises: MalformedDecision."""
    fields = _fields(reply)
    decision = fields.get("decision")
    if decision not in _DECISIONS:
        raise MalformedDecision(f"'decision' must be one of {', '.join(_DECISIONS)}")
    return Saturation(cast("Literal['SATURATED', 'CONTINUE']", decision), _reasoning(fields))


def read_accepted(reply: str, of: int) -> tuple[int, ...]:
    """Read the indices of accepted results from the reply, sorted. of: number of results. Raises: MalformedDecision."""
    fields = _fields(reply)
    numbers = fields.get("accepted")
    if not isinstance(numbers, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise MalformedDecision("the reply has no list of numbers under 'accepted'")
    if not all(1 <= number <= of for number in numbers):
        raise MalformedDecision(f"'accepted' must hold numbers from 1 to {of}")
    _reasoning(fields)
    return tuple(sorted({number - 1 for number in numbers}))


def _fields(reply: str) -> dict[str, Any]:
    fenced = _FENCED.match(reply)
    try:
        fields = json.loads(fenced["inside"] if fenced else reply)
    except ValueError as error:
        raise MalformedDecision("the reply is not JSON") from error
    if not isinstance(fields, dict):
        raise MalformedDecision("the reply is not a JSON object")
    return fields


def _reasoning(fields: dict[str, Any]) -> str:
    reasoning = fields.get("reasoning")
    if not isinstance(reasoning, str) or not reasoning.strip():
        raise MalformedDecision("the reply gives no reasoning")
    return " ".join(reasoning.split())


Decided = TypeVar("Decided")


@dataclass(frozen=True)
class CallPlace:
    """Where in a run a call is made: the deadline that applies, and the hypothesis and source that it is for.

    state: as the call path reads it, with `deadline_ts` if there is one.
    """

    state: Mapping[str, Any]
    ledger: ResearchLedger

    def budget_left_s(self) -> float:
        """Return the seconds until the end of the research budget or the propagated deadline, if that is earlier."""
        deadline = Deadline.from_state(self.state)
        own_s = self.ledger.budget_left_s()
        return own_s if deadline is None else min(own_s, deadline.remaining() - current_policy().floor_s)

    def winds_down(self, role: str) -> bool:
        """Return whether no further search may begin, since little time is left; recorded if so."""
        deadline = Deadline.from_state(self.state)
        if deadline is None or not winds_down(deadline):
            return False
        note_wound_down(role, deadline)
        return True

    def budget_over(self) -> bool:
        """Return whether the budget is used up, so that nothing new may start."""
        return self.budget_left_s() <= 0


def reply_of(model_client: ModelClient, given: str, place: CallPlace, retries: int) -> Steps[str]:
    """Ask the model in the client's role, with retries, and return the text of its reply.

    retries: attempts after the first. Raises one of the `FAILURES` of a model call when they are used up or would come
    after the budget, and what a propagated deadline raises.
    """
    role = model_client.calls.role
    propagated = Deadline.from_state(place.state) is not None
    retried = TIMEOUTS if propagated else (*TIMEOUTS, *RETRYABLE)
    attempt = 0
    while True:
        attempt += 1
        try:
            message = yield model_client.ask([HumanMessage(given)], place.state, system=PROMPTS[role])
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
    """Return the seconds until the next attempt: what the server asks for, else twice as long each time."""
    asked_s = retry_after_s(error)
    return float(FIRST_BACKOFF_S * 2 ** (attempt - 1)) if asked_s is None else asked_s


def decide(
    model_client: ModelClient, given: str, read: Callable[[str], Decided], place: CallPlace, retries: int
) -> Steps[Decided]:
    """Ask the model and return what `read` makes of its reply; after a malformed reply, ask once more.

    Raises: MalformedDecision for the second, or for the first if the budget is over by then; else as `reply_of`.
    """
    reply = yield from reply_of(model_client, given, place, retries)
    try:
        return read(reply)
    except MalformedDecision:
        if place.budget_over():
            raise
    recorder = current_recorder()
    if recorder is not None:
        recorder.event("malformed_decision", model_client.calls.role)
    reply = yield from reply_of(model_client, given, place, retries)
    return read(reply)
