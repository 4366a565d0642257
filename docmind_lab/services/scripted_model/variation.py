"""Vary the scripted model: some hand-overs, searches and answers are not the best, drawn by the call's key.

Without variation the same question gets the same sources and the same answer in every run, whatever its seed, so that
quality is a constant of the question. With it, a share of the model's decisions goes another way: the supervisor hands
over to another agent, retrieval searches for a part of the words, synthesis leaves sentences out. Runs of one seed
under two alternatives still meet the same decisions.
"""

from __future__ import annotations

import re
from dataclasses import replace

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.scripted_model.conversation import HANDOFF_PREFIX, Conversation, Reply, ToolCall

_WORD = re.compile(r"\S+")
# A sentence with the id of its document behind it, as synthesis writes them.
VARYING_ROLES = frozenset({"supervisor", "retrieval", "synthesis"})
"""Whose decisions vary."""
_CITED = re.compile(r".+?\[[^\]]+\]\s*", re.DOTALL)


def checked_variation(share: object) -> float:
    """Return the share as a float. Raises: ConfigurationError if it is not a number from 0 to 1."""
    if isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1:
        return float(share)
    raise ConfigurationError(f"model_variation must be a share of the decisions from 0 to 1, not {share!r}")


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
