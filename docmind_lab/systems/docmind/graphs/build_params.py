"""Options of the supervisor graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names

OutputMode = Literal["last_message", "full_history"]


@answers_wrong_names
@dataclass(frozen=True)
class SupervisorBuildParams:
    """Options of the supervisor graph.

    Args:
        supervisor_name: Name of the supervisor's node.
        output_mode: What an agent adds to the conversation: its "last_message" (the last two when the last is a tool's
            result) or its "full_history".
        add_handoff_messages: Leave breadcrumbs of each handoff in the conversation.
        max_concurrent_agents: Agents that run side by side after one message; None for the machine's own limit.
        max_visits: Handoffs to the same agent in one run; more are refused with an error the model can see.
    """

    noun: ClassVar[str] = "SupervisorBuildParams"

    supervisor_name: str = "supervisor"
    output_mode: OutputMode = "last_message"
    add_handoff_messages: bool = True
    max_concurrent_agents: int | None = 3
    max_visits: int = 3

    def __post_init__(self) -> None:
        mode: str = self.output_mode
        if mode == "structured":
            raise ConfigurationError(
                "output_mode 'structured' is not supported: structured data belongs in the graph's state "
                "(state_schema) or in an agent's response_format; use 'last_message' or 'full_history'"
            )
        if mode not in ("last_message", "full_history"):
            raise ConfigurationError(f"output_mode must be 'last_message' or 'full_history', not {self.output_mode!r}")
        if self.max_concurrent_agents is not None and self.max_concurrent_agents < 1:
            raise ConfigurationError(f"max_concurrent_agents must be 1 or more, not {self.max_concurrent_agents}")
        if self.max_visits < 1:
            raise ConfigurationError(f"max_visits must be 1 or more, not {self.max_visits}")
