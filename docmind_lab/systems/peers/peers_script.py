"""The peers' part of the simulated services: what the parent's model says, and the server of the peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from docmind_lab.services.hosted_behaviour import PEERS_PATH
from docmind_lab.services.hosts import DoorOfHost, ExchangeHost, add_host, add_roles
from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.extraction import extract_answer

PEER_TOOL_PREFIX: Final = "ask_"
"""Of a tool that asks a peer agent."""


def _delegate(conversation: Conversation) -> Reply:
    """Ask every peer on offer, each once; then answer from the passages that the peers returned."""
    names = {call.name for call in conversation.called_tools()}
    calls = tuple(
        ToolCall(name, {next(iter(schema.get("properties", {})), "question"): conversation.task})
        for name, schema in conversation.tools.items()
        if name.startswith(PEER_TOOL_PREFIX) and name not in names
    )
    return Reply(tool_calls=calls) if calls else _conclude(conversation)


def _conclude(conversation: Conversation) -> Reply:
    return Reply(extract_answer(conversation.question, conversation.documents()))


def _load_host() -> Callable[[Any, DoorOfHost], ExchangeHost]:
    # Function-level: the A2A SDK takes a second to load, and only what has peers needs it installed.
    from docmind_lab.systems.peers.peers_host import PeerHost  # noqa: PLC0415

    return PeerHost


add_roles(
    __name__,
    {"You delegate to peer agents": "delegate", "You conclude from what peer agents found": "conclude"},
    {"delegate": _delegate, "conclude": _conclude},
)
add_host(__name__, PEERS_PATH, _load_host)
