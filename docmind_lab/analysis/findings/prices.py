"""What an alternative asks for: of the code that adopts it, and of the settings that switch it on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PRICES: Final[Mapping[str, str]] = {
    "cooperative": "every role's state and every client must carry the deadline",
    "hard_timeout": "nothing in the graph changes",
    "async_cancellation": "every node, tool and client must be async",
    "stop_flag": "one argument to the graph",
    "hybrid": "what A asks for and what C asks for",
    "native": "every node, tool and client must be async",
}
"""Alternative → what has to change for it."""

SETTINGS: Final[Mapping[str, str]] = {
    "cooperative": "DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true",
    "hybrid": "DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true",
}
"""Alternative → the setting that it needs beside the decision timeout."""


def settings_to_paste(alternative: str, decision_timeout_s: float) -> str:
    """The environment variables of a choice, in a line."""
    timeout = f"DOCMIND_AGENTS__DECISION_TIMEOUT={decision_timeout_s:g}"
    return " ".join(part for part in (timeout, SETTINGS.get(alternative, "")) if part)
