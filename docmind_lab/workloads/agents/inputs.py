"""Questions to an agent, as inputs of the graph that runs it.

"What is yield?"                                             a question
{"question": "What is yield?", "depth": 2}                   with a keyword of the agent's function
{"input": "What is yield?", "gold": ["generator"], "id": "yield"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.workloads.agents.agent import Agent
from docmind_lab.workloads.agents.load import check_keywords

_OF_THE_LAB = ("gold", "id")
_QUESTIONS = ("question", "input")


def as_question(agent: Agent, item: Any, where: str) -> dict[str, Any]:
    """Return an item as a wrapped input of the agent's graph: its question, its keywords, gold and id.

    Raises: ConfigurationError, beginning with `where`, for an item without a question, or with keywords that the agent
    does not take.
    """
    of_the_lab: dict[str, Any] = {}
    keywords: dict[str, Any] = {}
    question = item
    while isinstance(question, Mapping):
        of_the_lab |= {name: question[name] for name in _OF_THE_LAB if name in question}
        named = next((name for name in _QUESTIONS if name in question), None)
        if named is None:
            known = ", ".join(map(str, question)) or "none"
            raise ConfigurationError(f"{where}: a question has the key question or input; this has {known}")
        keywords |= {name: value for name, value in question.items() if name not in (*_OF_THE_LAB, named)}
        question = question[named]
    if not isinstance(question, str):
        raise ConfigurationError(f"{where}: a question is a text, not a {type(question).__name__}")
    if not question.strip():
        raise ConfigurationError(f"{where}: the question is empty; write one")
    check_keywords(agent, keywords, where)
    return {"input": {"question": question, "keywords": keywords}, **of_the_lab}
