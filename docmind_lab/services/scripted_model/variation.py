"""The scripted model where it does not do its best: in a share of its calls, and when little time is left.

Without variation the same question gets the same sources and the same answer in every run, whatever its seed, so that
quality is a constant of the question. With it, a share of the model's decisions goes another way, drawn by the call's
key: the supervisor hands over to another agent, retrieval searches for a part of the words, synthesis leaves sentences
out. Runs of one seed under two alternatives still meet the same decisions.

What it does when its prompt says that little time is left is an assumption, which can be changed.

    UnderPressure.parse("hurries")            # below a quarter of the time it leaves out what can be left out
    UnderPressure.parse("panics:0.5")         # below a half it also answers with its first statement alone
    UnderPressure.parse("ignores")            # it goes on as if nothing had been said

A prompt without such a line changes nothing. What real models do differs: one study of negotiations closed 32 % of
deals with updates on the remaining time and 4 % without (arXiv 2601.13206), another one reports panic (2510.11713).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.time_policies import share_left
from docmind_lab.services.scripted_model.any_agent import reply_without_further_tools
from docmind_lab.services.scripted_model.conversation import HANDOFF_PREFIX, Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.scripted_roles import end_of_supervision

_WORD = re.compile(r"\S+")
# A sentence with the id of its document behind it, as synthesis writes them.
VARYING_ROLES = frozenset({"supervisor", "retrieval", "synthesis"})
"""Whose decisions vary."""
_CITED = re.compile(r".+?\[[^\]]+\]\s*", re.DOTALL)


def vary_reply(reply: Reply, conversation: Conversation, role: str, key: DrawKey, share: float) -> Reply:
    """Return the reply or, in this share of the cases (drawn by the key), another one that the role might give."""
    if share == 0 or key.uniform("variation") >= share:
        return reply
    drawn = key.uniform("variation kind")
    if role == "supervisor":
        return _hand_over(reply, conversation, drawn)
    if role == "retrieval":
        return replace(reply, tool_calls=tuple(_shorten_query(call, drawn) for call in reply.tool_calls))
    if role == "synthesis":
        return replace(reply, text=shorten_answer(reply.text, drawn))
    return reply


def _hand_over(reply: Reply, conversation: Conversation, drawn: float) -> Reply:
    """Hand over to another agent than the one whose turn it is; the end of a run stays its end."""
    best = reply.tool_calls[0].name if reply.tool_calls else ""
    if not best.startswith(HANDOFF_PREFIX):
        return reply
    others = [name for name in conversation.tools if name.startswith(HANDOFF_PREFIX) and name != best]
    return Reply(tool_calls=(ToolCall(others[int(drawn * len(others))], {}),)) if others else reply


def _shorten_query(call: ToolCall, drawn: float) -> ToolCall:
    """Shorten the search to between half of its words and all but one."""
    words = _WORD.findall(str(call.arguments.get("query", "")))
    if len(words) < 2:
        return call
    count = max(1, int(len(words) * (0.5 + drawn / 2)))
    first = int(drawn * 7919) % (len(words) - count + 1)
    return replace(call, arguments={**call.arguments, "query": " ".join(words[first : first + count])})


def shorten_answer(text: str, drawn: float) -> str:
    """Drop some of the answer's last sentences, keeping at least one. drawn: from 0, which keeps one, to 1."""
    cited = _CITED.findall(text)
    return text if len(cited) < 2 else "".join(cited[: 1 + int(drawn * (len(cited) - 1))]).strip()


PressureKind = Literal["ignores", "hurries", "panics"]
_KINDS: Final[tuple[PressureKind, ...]] = get_args(PressureKind)
DEFAULT_UNDER_PRESSURE: Final = "hurries:0.25"
"""What the model does where nothing else is said."""

_ANSWERING_ROLES: Final = frozenset({"synthesis", "research_findings", "assistant"})
_WHY: Final = "Little time is left."


@dataclass(frozen=True)
class UnderPressure:
    """What the model does when little time is left.

    kind: ignores: nothing else. hurries: the supervisor leaves out planning and validation, a research asks no further
    query and calls its sources saturated, and any other agent that has the result of a tool calls no further one.
    panics: besides, answers are their first statement alone. share: of the time: with so much left, or less, the model
    does so.
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
        if role == "assistant":
            calm = _without_further_tools(calm, conversation)
        if role in _ANSWERING_ROLES and self.kind == "panics":
            return replace(calm, text=shorten_answer(calm.text, 0.0))
        return calm


def _without_further_tools(calm: Reply, conversation: Conversation) -> Reply:
    """Return the reply of an agent that answers from what its tools have returned, if any has and it may answer."""
    has_results = any(message.get("role") == "tool" for message in conversation.current_turn())
    may_answer = conversation.tool_choice == "auto" and not conversation.named_tool
    return reply_without_further_tools(conversation) if calm.tool_calls and has_results and may_answer else calm


def _without_the_optional(calm: Reply, conversation: Conversation) -> Reply:
    """Return the supervisor's reply without planning and validation."""
    chosen = calm.tool_calls[0].name if calm.tool_calls else ""
    if chosen.startswith(HANDOFF_PREFIX) and "planner" in chosen:
        searching = [name for name in conversation.tools if name.startswith(HANDOFF_PREFIX) and "retrieval" in name]
        return Reply(tool_calls=(ToolCall(searching[0], {}),)) if searching else calm
    if chosen.startswith(HANDOFF_PREFIX) and "validation" in chosen:
        return end_of_supervision(conversation)
    return calm
