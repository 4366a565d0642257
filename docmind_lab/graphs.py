"""The supervisor graph of DocMind under its public names."""

from docmind_lab.docmind.graphs import (
    SUPERVISOR_PROMPT,
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    build_role_agents,
    create_forward_message_tool,
    create_handoff_tool,
)

__all__ = [
    "SUPERVISOR_PROMPT",
    "MultiAgentGraphState",
    "SupervisorBuildParams",
    "build_multi_agent_supervisor_graph",
    "build_role_agents",
    "create_forward_message_tool",
    "create_handoff_tool",
]
