"""What the simulated model does when its prompt says that little time is left. An assumption, which can be changed.

    UnderPressure.parse("hurries")            # below a quarter of the time it leaves out what can be left out
    UnderPressure.parse("panics:0.5")         # below a half it also answers with its first statement alone
    UnderPressure.parse("ignores")            # it goes on as if nothing had been said

A prompt without such a line changes nothing. What real models do differs: one study of negotiations closed 32 % of
deals with updates on the remaining time and 4 % without (arXiv 2601.13206), another one reports panic (2510.11713).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.time_policies import share_left
from docmind_lab.services.scripted_model.conversation import HANDOFF_PREFIX, Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.scripted_roles import end_of_supervision
from docmind_lab.services.scripted_model.variation import shorten_answer

PressureKind = Literal["ignores", "hurries", "panics"]
_KINDS: Final[tuple[PressureKind, ...]] = get_args(PressureKind)
DEFAULT_UNDER_PRESSURE: Final = "hurries:0.25"
"""What the model does where nothing else is said."""

_ANSWERING_ROLES: Final = frozenset({"synthesis", "research_findings"})
_WHY: Final = "Little time is left."


@dataclass(frozen=True)
class UnderPressure:
    """What the model does when little time is left.

    kind: ignores: nothing else. hurries: the supervisor leaves out planning and validation, a research asks no further
    query and calls its sources saturated. panics: besides, answers are their first statement alone. share: of the time:
    with so much left, or less, the model does so.
    """

    kind: PressureKind = "hurries"
    share: float = 0.25

    @classmethod
    def parse(cls, text: str) -> UnderPressure:
        """Return what a text names: a kind, with a share after a colon. Raises: ConfigurationError."""
        name, _, share = str(text).partition(":")
        kind = next((each for each in _KINDS if each == name), None)
        if kind is None:
            raise ConfigurationError(f"model_under_pressure must be one of {', '.join(_KINDS)}, not {text!r}")
        try:
            value = float(share or cls.share)
        except ValueError:
            value = -1.0
        if not 0 < value < 1:
            raise ConfigurationError(f"model_under_pressure: the share must be above 0 and below 1, not {share!r}")
        return cls(kind, value)

    def reply(self, calm: Reply, conversation: Conversation, role: str) -> Reply:
        """Return what the model says, given how much time its prompt says is left."""
        if self.kind == "ignores":
            return calm
        left = share_left(conversation.system_prompt)
        if left is None or left > self.share:
            return calm
        if role == "supervisor":
            return _without_the_optional(calm, conversation)
        if role == "research_query" and '"history": []' not in conversation.question:
            return Reply(json.dumps({"query": "", "reasoning": _WHY}))
        if role == "research_judge":
            return Reply(json.dumps({"decision": "SATURATED", "reasoning": _WHY}))
        if role in _ANSWERING_ROLES and self.kind == "panics":
            return replace(calm, text=shorten_answer(calm.text, 0.0))
        return calm


def _without_the_optional(calm: Reply, conversation: Conversation) -> Reply:
    """Return the supervisor's reply without planning and validation."""
    chosen = calm.tool_calls[0].name if calm.tool_calls else ""
    if chosen.startswith(HANDOFF_PREFIX) and "planner" in chosen:
        searching = [name for name in conversation.tools if name.startswith(HANDOFF_PREFIX) and "retrieval" in name]
        return Reply(tool_calls=(ToolCall(searching[0], {}),)) if searching else calm
    if chosen.startswith(HANDOFF_PREFIX) and "validation" in chosen:
        return end_of_supervision(conversation)
    return calm
