"""DocMind's coordinator: one question in, one response out, within its budget (ADR-011, ADR-056).

coordinator.py    MultiAgentCoordinator: process_query; threads of conversations
response.py       AgentResponse: from an outcome, or from documents when the agents failed
"""

from docmind_lab.systems.docmind.coordinator.coordinator import MultiAgentCoordinator
from docmind_lab.systems.docmind.coordinator.response import AgentResponse

__all__ = ["AgentResponse", "MultiAgentCoordinator"]
