"""The supervisor graph over five roles, built from LangGraph and LangChain alone.

supervisor_state.py  the state that travels through the graph, with the deadline
handoff.py           tools that hand over to an agent, or pass its message on
history.py           the conversation as a model is given it: whole and trimmed
roles.py             the five agents: prompts, tools
supervisor.py        the supervisor graph, returned uncompiled: its options, and an agent as one of its nodes
"""

from docmind_lab.systems.docmind.graphs.handoff import create_forward_message_tool, create_handoff_tool
from docmind_lab.systems.docmind.graphs.roles import SUPERVISOR_PROMPT, build_role_agents
from docmind_lab.systems.docmind.graphs.supervisor import SupervisorBuildParams, build_multi_agent_supervisor_graph
from docmind_lab.systems.docmind.graphs.supervisor_state import MultiAgentGraphState

__all__ = [
    "SUPERVISOR_PROMPT",
    "MultiAgentGraphState",
    "SupervisorBuildParams",
    "build_multi_agent_supervisor_graph",
    "build_role_agents",
    "create_forward_message_tool",
    "create_handoff_tool",
]
