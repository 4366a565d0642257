"""The response to a question: made from an outcome, or from what retrieval finds if the agents failed (FR-3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import httpx
from qdrant_client.http.exceptions import ApiException

from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.errors import DocmindLabError
from docmind_lab.core.levels import TIMEOUT_REASONS
from docmind_lab.network.recorder import Recorder, recording, time_outside
from docmind_lab.services.scripted_model.conversation import Document
from docmind_lab.services.scripted_model.extraction import NOT_FOUND, extract_answer
from docmind_lab.systems.docmind.retrieval.strategies import search
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources, optimised_query

THREAD_BUSY = "thread_busy"
"""Stop reason of a question whose turn on its thread did not come in time."""

_TIMED_OUT = frozenset({*TIMEOUT_REASONS, THREAD_BUSY})
_SHOWN_CHARACTERS = 400  # about five lines of a terminal; a notebook shows all of it


@dataclass(frozen=True)
class AgentResponse:
    """The answer to one question.

    content: the answer; when the budget ended first, what there was of it, or a sentence that says so.
    sources: documents found, each a mapping with id, content, metadata, score.
    metadata: thread_id, run_id, alternative, outcome, decision_timeout_s, overrun_s (late by; 0 in time); after a
        timeout also reason="timeout" and cancel_reason; after a failure reason="error" and error_type.
    validation_score: share of statements that validation found supported, 0 to 1; None if it never ran.
    processing_time: seconds from the call to the response.
    optimization_metrics: llm_calls, retrieval_calls, refused_calls, input_tokens, output_tokens (NaN when no response
        counted them), coordination_overhead_s (time outside of all calls).
    agent_decisions: what the agents decided, in order: {"agent", "decision"}.
    fallback_used: the content is extracted from documents because the agents failed.
    """

    content: str
    sources: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    validation_score: float | None = None
    processing_time: float = 0.0
    optimization_metrics: Mapping[str, float] = field(default_factory=dict)
    agent_decisions: tuple[Mapping[str, Any], ...] = ()
    fallback_used: bool = False

    @property
    def timed_out(self) -> bool:
        """Whether the budget ended before the answer was complete."""
        return self.metadata.get("reason") == "timeout"

    def __repr__(self) -> str:
        text = self.content if len(self.content) <= _SHOWN_CHARACTERS else f"{self.content[:_SHOWN_CHARACTERS]}…"
        return f"{self._title()}\n{text}"

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self._title())}</b></p><p>{escape(self.content)}</p>"

    def _title(self) -> str:
        how = [str(self.metadata.get("outcome", "")).replace("_", " "), f"in {self.processing_time:.2f} s"]
        if "decision_timeout_s" in self.metadata:
            how.append(f"of {self.metadata['decision_timeout_s']:g} s")
        sources = len(self.sources)
        parts = [" ".join(part for part in how if part), f"{sources} {'source' if sources == 1 else 'sources'}"]
        if self.validation_score is not None:
            parts.append(f"{self.validation_score:.0%} of the statements supported")
        if self.fallback_used:
            parts.append("extracted from documents: the agents failed")
        return f"AgentResponse: {', '.join(parts)}"


def stop_metadata(outcome: Outcome) -> dict[str, Any]:
    """Return the metadata of a run that stopped short; empty for an answer."""
    if outcome.outcome == "answered":
        return {"note": outcome.stop_reason} if outcome.stop_reason else {}
    if outcome.stop_reason in _TIMED_OUT:
        return {"reason": "timeout", "cancel_reason": outcome.stop_reason}
    error = {"error_type": outcome.error_type} if outcome.error_type else {}
    return {"reason": "error", "cancel_reason": outcome.stop_reason, **error}


def content_of(outcome: Outcome, decision_timeout_s: float, refusal: str = "") -> str:
    """Return the answer, the draft that a timeout left, or what happened. refusal: why a request was not sent."""
    if outcome.answer:
        return outcome.answer
    count = len(outcome.documents)
    addition = f" {count} {'document was' if count == 1 else 'documents were'} found by then." if count else ""
    if outcome.stop_reason == THREAD_BUSY:
        return f"No answer: another question was still being answered on this thread for {decision_timeout_s:g} s."
    if outcome.stop_reason in _TIMED_OUT:
        return f"No answer within the decision timeout of {decision_timeout_s:g} s.{addition}"
    why = outcome.error_type or outcome.stop_reason
    return f"No answer: the agents failed ({f'{why}: {refusal}' if refusal else why}).{addition}"


def fallback_content(failure: str, sentences: str) -> str:
    """Join the failure's sentence and the sentences of documents into the content of a fallback."""
    return f"{failure} These sentences of the documents share words with the question:\n\n{sentences}"


def decisions_of(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the decisions of router, planner and validation, as far as they ran."""
    decided = (("router", state.get("route")), ("planner", state.get("plan")), ("validation", state.get("validation")))
    return tuple({"agent": f"{role}_agent", "decision": decision} for role, decision in decided if decision)


def metrics_of(recorder: Recorder, returned_at: float) -> dict[str, float]:
    """Return the numbers of one run, up to its return."""
    snapshot = recorder.snapshot()
    attempts = [attempt for attempt in snapshot.attempts if attempt.outcome != "refused"]
    calls = [
        (event.detail["begun_at_s"], event.at - recorder.started_at)
        for event in snapshot.events
        if event.event == "call_ended"
    ]
    return {
        "llm_calls": sum(attempt.call.kind == "llm" for attempt in attempts),
        "retrieval_calls": sum(attempt.call.kind == "retrieval" for attempt in attempts),
        "refused_calls": len(snapshot.attempts) - len(attempts),
        "input_tokens": _known_sum([attempt.input_tokens for attempt in attempts]),
        "output_tokens": _known_sum([attempt.output_tokens for attempt in attempts]),
        "coordination_overhead_s": time_outside(calls, returned_at - recorder.started_at),
    }


def _known_sum(counts: Sequence[int | None]) -> float:
    numbers = [count for count in counts if count is not None]
    return float(sum(numbers)) if numbers else math.nan


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
    documents_so_far: Sequence[Mapping[str, Any]],
    resources: RetrievalResources,
    deadline: Deadline,
    recorder: Recorder,
) -> Fallback | None:
    """Return sentences of documents that answer the question, cited; None without budget or a match.

    documents_so_far: what the agents had retrieved before they failed. Without any, one search is made, which the
    deadline cuts as a whole; nothing of it goes on afterwards.
    """
    if deadline.remaining() <= LEAST_BUDGET_S:
        return None
    documents = tuple(documents_so_far) or _search_documents(question, resources, deadline, recorder)
    content = extract_answer(question, [Document(str(d["id"]), str(d["content"])) for d in documents])
    if content == NOT_FOUND or deadline.passed():
        return None
    return Fallback(content, documents)


def _search_documents(
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
