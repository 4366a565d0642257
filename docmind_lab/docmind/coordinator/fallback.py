"""FR-3's last resort: when the agents failed and there is budget left, an answer made of what retrieval finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from qdrant_client.http.exceptions import ApiException

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.errors import DocmindLabError
from docmind_lab.docmind.retrieval import search
from docmind_lab.docmind.retrieval.tool import RetrievalResources, optimised_query
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.services.scripted_model.conversation import Document
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer

ROLE = "fallback"
# Hybrid needs no route, which only an agent could have chosen.
_STRATEGY = "hybrid"
# Less than a search takes anywhere: with so little left it would only be cut.
LEAST_BUDGET_S = 0.02


@dataclass(frozen=True)
class Fallback:
    """An answer extracted from documents. documents: mappings with id, content, metadata, score."""

    content: str
    documents: tuple[Mapping[str, Any], ...]


def extractive_fallback(
    question: str,
    found: Sequence[Mapping[str, Any]],
    resources: RetrievalResources,
    deadline: Deadline,
    recorder: Recorder,
) -> Fallback | None:
    """Sentences of the documents that answer the question, each cited; None if there is no budget or nothing found.

    found: documents that the agents had retrieved before they failed; without any, one search is made. It is cut at
    the deadline, in total, and nothing of it goes on afterwards.
    """
    if deadline.remaining() <= LEAST_BUDGET_S:
        return None
    documents = tuple(found) or _searched(question, resources, deadline, recorder)
    content = extract_answer(question, [Document(str(d["id"]), str(d["content"])) for d in documents])
    if content == NOT_FOUND or deadline.passed():
        return None
    return Fallback(content, documents)


def _searched(
    question: str, resources: RetrievalResources, deadline: Deadline, recorder: Recorder
) -> tuple[Mapping[str, Any], ...]:
    try:
        with (
            recording(recorder),
            recorder.call("retrieval", ROLE, "0.0", cap_from_deadline=True),
            deadline_scope(deadline),
        ):
            documents = search(resources.client, resources.index, _STRATEGY, optimised_query(question))
    except (ApiException, httpx.HTTPError, TimeoutError, DocmindLabError, ValueError):
        # The agents have failed already; that the last resort fails too adds nothing that a caller could use.
        return ()
    return tuple(document.to_payload() for document in documents)
