"""What the model decides, read from its replies: JSON of a fixed shape, with its reasons.

    next_query('{"query": "generator return value", "reasoning": "…"}')
    saturation('{"decision": "SATURATED", "reasoning": "the last query brought nothing new"}')
    accepted('{"accepted": [1, 3], "reasoning": "…"}', of=5)

A reply of any other shape is malformed, and a malformed one decides nothing: above all it is not SATURATED.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from docmind_lab.core.errors import DocmindLabError

_FENCED = re.compile(r"^\s*```(?:json)?\s*\n(?P<inside>.*?)\n?```\s*$", re.DOTALL)
_DECISIONS = ("SATURATED", "CONTINUE")


class MalformedDecision(DocmindLabError):
    """A reply of the model that decides nothing; the message says what is wrong with its shape, not what it says."""


@dataclass(frozen=True)
class NextQuery:
    """The query to ask next; empty when the model has none."""

    query: str
    reasoning: str


@dataclass(frozen=True)
class Saturation:
    """Whether a source has nothing more to give, and why."""

    decision: Literal["SATURATED", "CONTINUE"]
    reasoning: str


def next_query(reply: str) -> NextQuery:
    """The query in the reply. Raises: MalformedDecision."""
    fields = _fields(reply)
    query = fields.get("query")
    if not isinstance(query, str):
        raise MalformedDecision("the reply has no text under 'query'")
    return NextQuery(" ".join(query.split()), _reasoning(fields))


def saturation(reply: str) -> Saturation:
    """The decision in the reply. Raises: MalformedDecision."""
    fields = _fields(reply)
    decision = fields.get("decision")
    if decision not in _DECISIONS:
        raise MalformedDecision(f"'decision' must be one of {', '.join(_DECISIONS)}")
    return Saturation(cast("Literal['SATURATED', 'CONTINUE']", decision), _reasoning(fields))


def accepted(reply: str, of: int) -> tuple[int, ...]:
    """Places of the accepted results, from 0, in order. of: how many results there were. Raises: MalformedDecision."""
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
