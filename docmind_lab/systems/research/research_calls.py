"""Model calls of the research loop: retries within the budget, and the decision read from each reply.

    Saturation.read('{"decision": "SATURATED", "reasoning": "the last query brought nothing new"}')
    Accepted.read('{"accepted": [1, 3], "reasoning": "…"}', of=5)

A reply of any other shape is malformed and decides nothing: above all it is not SATURATED. The model is then asked once
more. Attempts after the first are ours and never past the budget; the client makes none of its own. With a propagated
deadline the call path already retries what is not a timeout within it, so only timeouts are left to this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar

from langchain_core.messages import HumanMessage
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from docmind_lab.core.deadlines import Deadline, current_policy
from docmind_lab.core.errors import DocmindLabError
from docmind_lab.core.sync_async import Steps, pause
from docmind_lab.network.recorder import note_event
from docmind_lab.systems.base.model_calls import FIRST_BACKOFF_S, RETRYABLE, TIMEOUTS, retry_after_s
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.timed_calls import note_wound_down, winds_down
from docmind_lab.systems.research.prompts import PROMPTS
from docmind_lab.systems.research.research_ledger import ResearchLedger

_FENCED = re.compile(r"^\s*```(?:json)?\s*\n(?P<inside>.*?)\n?```\s*$", re.DOTALL)


class MalformedDecision(DocmindLabError):
    """The model's reply has the wrong shape, so it decides nothing; the message says what is wrong with it."""


def _folded(text: str) -> str:
    return " ".join(text.split())


Words = Annotated[str, AfterValidator(_folded)]


class Decision(BaseModel):
    """A decision of the model, with the reason that it must give."""

    model_config = ConfigDict(strict=True, frozen=True)

    reasoning: Annotated[Words, Field(min_length=1)]

    @classmethod
    def read(cls, reply: str, of: int = 0) -> Self:
        """Read the decision from a reply. of: number of results that it is about. Raises: MalformedDecision."""
        fenced = _FENCED.match(reply)
        try:
            return cls.model_validate_json(fenced["inside"] if fenced else reply, context={"of": of})
        except ValidationError as error:
            raise MalformedDecision(f"the reply is no {cls.__name__}: {error.errors()[0]['msg']}") from error


class NextQuery(Decision):
    """The query to ask next; empty if the model has none."""

    query: Words


class Saturation(Decision):
    """The model's decision whether a source has nothing more to give."""

    decision: Literal["SATURATED", "CONTINUE"]


class Accepted(Decision):
    """The numbers of the results that bear on the hypothesis, from 1, each once and in order."""

    accepted: tuple[int, ...]

    @field_validator("accepted")
    @classmethod
    def _in_order(cls, numbers: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        of = 0 if info.context is None else info.context["of"]
        if not all(1 <= number <= of for number in numbers):
            raise ValueError(f"'accepted' must hold numbers from 1 to {of}")
        return tuple(sorted(set(numbers)))


Decided = TypeVar("Decided", bound=Decision)


@dataclass(frozen=True)
class CallPlace:
    """Where in a run a call is made: its deadline, its hypothesis and source, as the call path reads a state."""

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


def reply_of(model_client: ModelClient, prompt: str, place: CallPlace, retries: int) -> Steps[str]:
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
            message = yield model_client.ask([HumanMessage(prompt)], place.state, system=PROMPTS[role])
        except retried as error:
            asked_s = retry_after_s(error)
            wait_s = float(FIRST_BACKOFF_S * 2 ** (attempt - 1)) if asked_s is None else asked_s
            if attempt > retries or wait_s >= place.budget_left_s():
                raise
            note_event("retry", role, kind="llm", attempt=attempt, wait_s=wait_s)
            yield pause(wait_s)
        else:
            return str(message.text)


def decide(
    model_client: ModelClient, prompt: str, kind: type[Decided], place: CallPlace, retries: int, of: int = 0
) -> Steps[Decided]:
    """Ask the model for a decision of this kind, and again after a malformed reply. Raises: MalformedDecision."""
    reply = yield from reply_of(model_client, prompt, place, retries)
    try:
        return kind.read(reply, of)
    except MalformedDecision:
        if place.budget_over():
            raise
    note_event("malformed_decision", model_client.calls.role)
    reply = yield from reply_of(model_client, prompt, place, retries)
    return kind.read(reply, of)
