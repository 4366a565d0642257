"""The roles of a parent of peer agents, as the scripted model plays them: it delegates, then it concludes.

Delegating, it asks every peer on offer, each once. Concluding, it makes its answer of the passages that the peers gave
back; a peer that gave none (it timed out, say) is one whose passages are not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.extraction import extract_answer

PEER_TOOL_PREFIX = "ask_"

ROLES: Mapping[str, str] = {
    "You delegate to peer agents": "delegate",
    "You conclude from what peer agents found": "conclude",
}
"""A phrase of a role's system prompt, which stands in no other → the role."""


def _delegate(conversation: Conversation) -> Reply:
    asked = {call.name for call in conversation.called_tools()}
    calls = tuple(
        ToolCall(name, {_parameter_of(schema): conversation.task})
        for name, schema in conversation.tools.items()
        if name.startswith(PEER_TOOL_PREFIX) and name not in asked
    )
    return Reply(tool_calls=calls) if calls else _conclude(conversation)


def _parameter_of(schema: Mapping[str, Any]) -> str:
    return next(iter(schema.get("properties", {})), "question")


def _conclude(conversation: Conversation) -> Reply:
    return Reply(extract_answer(conversation.question, conversation.documents()))


PLAYED: Mapping[str, Callable[[Conversation], Reply]] = {"delegate": _delegate, "conclude": _conclude}
"""Role → what it says."""
