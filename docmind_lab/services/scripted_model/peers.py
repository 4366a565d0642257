"""The roles of an agent that delegates to peers, as the scripted model plays them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docmind_lab.services.scripted_model.conversation import Conversation, Reply

ROLES: Mapping[str, str] = {}
"""A phrase of a role's system prompt, which stands in no other → the role."""

PLAYED: Mapping[str, Callable[[Conversation], Reply]] = {}
"""Role → what it says."""
