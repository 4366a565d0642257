"""DocMind's coordinator: one question in, one response out, within its budget (ADR-011, ADR-056).

coordinator.py    MultiAgentCoordinator: process_query, stream, resume; threads of conversations
response.py       AgentResponse: from an outcome, or from documents when the agents failed
answer_stream.py  stream the text of an answer while it is written
"""

from docmind_lab.systems.docmind.coordinator.answer_stream import AnswerStream
from docmind_lab.systems.docmind.coordinator.coordinator import MultiAgentCoordinator
from docmind_lab.systems.docmind.coordinator.response import AgentResponse

__all__ = ["AgentResponse", "AnswerStream", "MultiAgentCoordinator"]
