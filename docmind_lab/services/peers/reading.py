"""What a peer answers: the statements of its passages that answer the question, and where they stand.

The same task gets the same answer. Nothing is looked up elsewhere: a peer knows what it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.services.scripted_model.conversation import Document
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer


def read(task: Mapping[str, Any]) -> dict[str, Any]:
    """{"statement": sentences with citations, "ids": the cited passages in the order given}; empty when nothing fits.

    task: {"question": text, "passages": [{"id", "content"}, …]}; whatever else stands there, or is missing, is as if
    nothing had been sent.
    """
    passages = [
        Document(str(passage["id"]), str(passage["content"]))
        for passage in _listed(task.get("passages"))
        if isinstance(passage, Mapping) and passage.get("id") and passage.get("content")
    ]
    statement = extract_answer(str(task.get("question", "")), passages)
    if statement == NOT_FOUND:
        return {"statement": "", "ids": []}
    return {"statement": statement, "ids": [p.id for p in passages if f"[{p.id}]" in statement]}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()
