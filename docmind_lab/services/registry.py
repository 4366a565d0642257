"""What systems add to the simulated services: roles of the scripted model, and servers below paths of their own.

    add_roles(__name__, {"You judge whether a source": "research_judge"}, {"research_judge": _judge})
    add_host(__name__, "/a2a/", _load_host)

A module adds its part when it is imported. Services in a process of their own import the same modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from docmind_lab.services.hosts import DoorOfHost, ExchangeHost
from docmind_lab.services.scripted_model.conversation import Conversation, Reply
from docmind_lab.services.scripted_model.scripted_roles import REPLIES, ROLE_OF_PHRASE

HostMaker = Callable[[Any, DoorOfHost], ExchangeHost]
"""(behaviour, door) → the server."""

HOSTS: dict[str, Callable[[], HostMaker]] = {}
"""Path → a function that loads the class of the server of all requests below it. It may take a second."""

_modules: dict[str, None] = {}


def add_roles(
    module: str, role_of_phrase: Mapping[str, str], replies: Mapping[str, Callable[[Conversation], Reply]]
) -> None:
    """Add roles of the scripted model.

    Args:
        module: The name of the module that adds them.
        role_of_phrase: A phrase of a role's system prompt, which stands in no other → the role.
        replies: Role → what it says.
    """
    _modules[module] = None
    ROLE_OF_PHRASE.update(role_of_phrase)
    REPLIES.update(replies)


def add_host(module: str, path: str, load: Callable[[], HostMaker]) -> None:
    """Add a server.

    Args:
        module: The name of the module that adds it.
        path: What the paths of its requests begin with.
        load: Returns the server's class, a subclass of `ExchangeHost`.
    """
    _modules[module] = None
    HOSTS[path] = load


def modules() -> tuple[str, ...]:
    """Return the modules that have added something, in order."""
    return tuple(_modules)
