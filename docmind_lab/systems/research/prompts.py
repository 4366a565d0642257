"""The prompts of the model's four roles, and the JSON object that each role gets as the user's message.

query writer   hypothesis, source, what was asked and found, excerpts of what was kept → the next query
filter         hypothesis, results → which of them bear on it
judge          hypothesis, what was asked and found → SATURATED or CONTINUE
synthesis      task, hypotheses, what was kept → the findings, with citations
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from docmind_lab.systems.research.research_ledger import SearchAttempt
from docmind_lab.systems.research.sources import Item, SourceSpec
from docmind_lab.systems.research.tasks import Hypothesis, ResearchTask

WRITER, FILTER, JUDGE, SYNTHESIS = "query_writer", "filter", "judge", "synthesis"

PROMPTS = {
    WRITER: (
        "You write the next query of a research to one source. You are given the hypothesis, the source, the queries "
        "so far with what they brought, and excerpts of what was kept. Write a query that can bring something new. "
        'Reply with JSON only: {"query": "…", "reasoning": "why this one"}. An empty query means that you have none.'
    ),
    FILTER: (
        "You filter the results of a research query. Accept what bears on the hypothesis, and nothing else. "
        'Reply with JSON only: {"accepted": [numbers of the results], "reasoning": "why"}.'
    ),
    JUDGE: (
        "You judge whether a source of a research is saturated: whether further queries to it are likely to bring "
        "anything new on the hypothesis. "
        'Reply with JSON only: {"decision": "SATURATED" or "CONTINUE", "reasoning": "why"}.'
    ),
    SYNTHESIS: (
        "You write the findings of a research from the documents that were kept, for each hypothesis in turn. Every "
        "statement is followed by the id of the document that bears it out, in square brackets. Add nothing."
    ),
}
"""System prompt of each role. The first sentence of each stands in no other prompt."""

# Enough to see what a source talks about; whole passages would fill a small model's context after three queries.
_EXCERPTS, _EXCERPT_CHARACTERS = 4, 300
# Of each hypothesis, in the report: as many as a small model reads at once.
_DOCUMENTS_PER_HYPOTHESIS = 8


def for_writer(hypothesis: Hypothesis, spec: SourceSpec, history: Sequence[SearchAttempt], kept: Sequence[Item]) -> str:
    """Return the message for the query writer."""
    return _message(
        hypothesis=hypothesis.text,
        source=spec.name,
        description=spec.description,
        history=_history(history),
        excerpts=[item.text[:_EXCERPT_CHARACTERS] for item in kept[-_EXCERPTS:]],
    )


def for_filter(hypothesis: Hypothesis, items: Sequence[Item]) -> str:
    """Return the message for the filter."""
    results = [{"number": n, "title": item.title, "text": item.text} for n, item in enumerate(items, 1)]
    return _message(hypothesis=hypothesis.text, results=results)


def for_judge(hypothesis: Hypothesis, spec: SourceSpec, history: Sequence[SearchAttempt], kept: Sequence[Item]) -> str:
    """Return the message for the saturation judge."""
    return _message(hypothesis=hypothesis.text, source=spec.name, history=_history(history), kept=len(kept))


def for_synthesis(task: ResearchTask, items: Sequence[Item]) -> str:
    """Return the message for the writer of the findings, with the first kept results of each hypothesis."""
    chosen: dict[str, Item] = {}
    for hypothesis in task.hypotheses:
        of_it = [item for item in items if item.hypothesis == hypothesis.id and item.filtered]
        chosen |= {item.key: item for item in _interleave(of_it)[:_DOCUMENTS_PER_HYPOTHESIS]}
    documents = [{"id": item.key, "content": item.text} for item in chosen.values()]
    return _message(task=task.text, hypotheses=[one.text for one in task.hypotheses], documents=documents)


def _interleave(items: Sequence[Item]) -> list[Item]:
    """Interleave the items of all sources: the first of each, then the second of each; sources by name."""
    by_source: dict[str, list[Item]] = {name: [] for name in sorted({item.source for item in items})}
    for item in items:
        by_source[item.source].append(item)
    longest = max((len(queue) for queue in by_source.values()), default=0)
    return [queue[place] for place in range(longest) for queue in by_source.values() if place < len(queue)]


def _history(history: Sequence[SearchAttempt]) -> list[dict[str, Any]]:
    return [
        {
            "query": attempt.query,
            "found": attempt.found,
            "accepted": attempt.accepted,
            "new": len(attempt.new),
            "error": attempt.error,
        }
        for attempt in history
    ]


def _message(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False)
