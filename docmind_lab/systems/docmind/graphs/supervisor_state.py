"""The state of the supervisor graph, which the parent and every role share."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NotRequired

from docmind_lab.systems.base.state import Merged, SystemState, keep_reason, newest


def merge_visits(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    """Return the larger of two counts for each agent."""
    return {name: max((old or {}).get(name, 0), (new or {}).get(name, 0)) for name in [*(old or {}), *(new or {})]}


class MultiAgentGraphState(SystemState):
    """State of the supervisor graph and of every role.

    visits: handoffs per agent.
    handoff_ordinal, fan_out_index: which handoff, and which of its parallel tasks, this agent works on.

    Agents give a changed key back whole: merging a value that holds the old one must not add it twice.
    """

    route: NotRequired[Annotated[dict[str, Any], Merged(dict, newest)]]
    plan: NotRequired[Annotated[list[str], Merged(list, newest)]]
    validation: NotRequired[Annotated[dict[str, Any], Merged(dict, newest)]]
    task: NotRequired[str]
    handoff_ordinal: NotRequired[int]
    fan_out_index: NotRequired[int]
    visits: NotRequired[Annotated[dict[str, int], Merged(dict, merge_visits)]]
    stop_reason: NotRequired[Annotated[str, Merged(str, keep_reason)]]


# Set by the graph for the agent it hands over to; an agent's own result never writes them back.
HANDED_DOWN = frozenset(
    {"messages", "deadline_ts", "task", "handoff_ordinal", "fan_out_index", "visits", "remaining_steps", "jump_to"}
)

# What one question has led to; with a checkpointer the next question on the thread starts without it.
OF_ONE_QUESTION: Mapping[str, Any] = MappingProxyType(
    {"documents": [], "route": {}, "plan": [], "validation": {}, "visits": {}, "stop_reason": ""}
)
