"""The graph under test: a supervisor over five roles, built from LangGraph and LangChain alone.

state.py        what travels through the graph, the deadline included
handoff.py      tools that hand over to an agent, or pass its message on
history.py      the conversation as a model may see it: whole, trimmed, counted
model_calls.py  around every model call: observation and the deadline
client_retries.py  models whose client does not retry
colours.py      model calls and tools that are async, sync, or block the event loop
roles.py        the five agents: prompts, tools
supervisor.py   the supervisor graph, returned uncompiled; build_params.py its options
agent_node.py   one agent in it: what it is handed, what it brings back, what becomes of one that is cut
observer.py     seeing a graph at work without touching it
fence.py        keeping an old run out of a thread's checkpoints; passing_saver.py what it stands on
bound.py        a graph with the context and the step limit of one run
"""

from docmind_lab.docmind.graphs.build_params import SupervisorBuildParams
from docmind_lab.docmind.graphs.handoff import create_forward_message_tool, create_handoff_tool
from docmind_lab.docmind.graphs.roles import SUPERVISOR_PROMPT, build_role_agents
from docmind_lab.docmind.graphs.state import MultiAgentGraphState
from docmind_lab.docmind.graphs.supervisor import build_multi_agent_supervisor_graph

__all__ = [
    "SUPERVISOR_PROMPT",
    "MultiAgentGraphState",
    "SupervisorBuildParams",
    "build_multi_agent_supervisor_graph",
    "build_role_agents",
    "create_forward_message_tool",
    "create_handoff_tool",
]
