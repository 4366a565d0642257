"""The roles of the research loop in the scripted model.

The query writer asks in the hypothesis's own words first, and then with words that stand in what was kept. The filter
accepts what has a sentence with enough of those words. The judge calls a source saturated when its last two queries
brought nothing new, or little beside what is there.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from docmind_lab.services.hosts import add_roles
from docmind_lab.services.scripted_model.conversation import Conversation, Document, Reply, parse_json
from docmind_lab.services.scripted_model.extraction import (
    NOT_FOUND,
    content_words,
    extract_answer,
    sentences,
)

ROLES: Mapping[str, str] = {
    "You write the next query of a research": "research_query",
    "You filter the results of a research query": "research_filter",
    "You judge whether a source of a research is saturated": "research_judge",
    "You write the findings of a research": "research_findings",
}
"""A phrase of a role's system prompt, which stands in no other → the role."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]+")
_LONGEST_QUERY = 8
_WORDS_OF_HYPOTHESIS, _WORDS_OF_EXCERPTS = 3, 3
# A sentence bears on a hypothesis with two of its words, and with more where it has many.
_LEAST_SHARED, _SHARE_OF_WORDS = 2, 0.3
# Of what is there: with less than a fifth from two queries, another one would hardly pay.
_LITTLE = 0.2


def _user_json(conversation: Conversation) -> dict[str, Any]:
    """Parse the JSON object in the user's message; return an empty one for anything else."""
    request = parse_json(conversation.question)
    return request if isinstance(request, dict) else {}


def _words(text: str) -> list[str]:
    """Return the words of a text that carry meaning, unchanged, each once, in order."""
    return [word for word in dict.fromkeys(_WORD.findall(text.lower())) if content_words(word)]


def _query(conversation: Conversation) -> Reply:
    request = _user_json(conversation)
    words, history = _words(str(request.get("hypothesis", ""))), request.get("history") or []
    if not history:
        return _json(query=" ".join(words[:_LONGEST_QUERY]), reasoning="The words of the hypothesis come first.")
    stems = {stem for attempt in history for stem in content_words(str(attempt.get("query", "")))}
    counts = Counter(word for text in request.get("excerpts") or [] for word in _words(str(text)))
    # Words that several excerpts share say more of the subject than those of one; ties by the alphabet.
    fresh = sorted(
        (word for word in counts if not stems.intersection(content_words(word))), key=lambda word: (-counts[word], word)
    )
    turn = len(history) % max(1, len(words))
    own = (words[turn:] + words[:turn])[:_WORDS_OF_HYPOTHESIS]
    added = fresh[:_WORDS_OF_EXCERPTS]
    if not added and len(history) >= len(words):
        return _json(query="", reasoning="Every word that could be asked for has been asked for.")
    reasoning = "Words of what was kept may lead further." if added else "Fewer of the words may find more."
    return _json(query=" ".join(dict.fromkeys([*own, *added])), reasoning=reasoning)


def _filter(conversation: Conversation) -> Reply:
    request = _user_json(conversation)
    words = set(content_words(str(request.get("hypothesis", ""))))
    needed = max(_LEAST_SHARED, round(_SHARE_OF_WORDS * len(words)))
    results = request.get("results") or []
    accepted = [int(result["number"]) for result in results if _is_relevant(result, words, needed)]
    reasoning = f"{len(accepted)} of {len(results)} have a sentence with {needed} words of the hypothesis."
    return _json(accepted=accepted, reasoning=reasoning)


def _is_relevant(result: Mapping[str, Any], words: set[str], needed: int) -> bool:
    title = set(content_words(str(result.get("title", ""))))
    return any(
        len(words & (title | set(content_words(sentence)))) >= needed for sentence in sentences(str(result["text"]))
    )


def _judge(conversation: Conversation) -> Reply:
    request = _user_json(conversation)
    history, total = request.get("history") or [{}], int(request.get("kept") or 0)
    if history[-1].get("error"):
        return _json(decision="CONTINUE", reasoning="The last query failed, which says nothing of the source.")
    # One dry query may have been a bad one; two in a row are a dry source.
    new = sum(int(attempt.get("new") or 0) for attempt in history[-2:])
    if len(history) > 1 and new < max(1, _LITTLE * total):
        return _json(decision="SATURATED", reasoning=f"The last two queries brought {new} new of now {total}.")
    return _json(decision="CONTINUE", reasoning=f"The last two queries brought {new} new of now {total}.")


def _findings(conversation: Conversation) -> Reply:
    request = _user_json(conversation)
    documents = [Document(str(one["id"]), str(one["content"])) for one in request.get("documents") or []]
    texts = [extract_answer(str(hypothesis), documents) for hypothesis in request.get("hypotheses") or []]
    answers = [text for text in dict.fromkeys(texts) if text != NOT_FOUND]
    return Reply("\n\n".join(answers) or NOT_FOUND)


def _json(**fields: Any) -> Reply:
    return Reply(json.dumps(fields))


_REPLIES: Mapping[str, Callable[[Conversation], Reply]] = {
    "research_query": _query,
    "research_filter": _filter,
    "research_judge": _judge,
    "research_findings": _findings,
}

add_roles(__name__, ROLES, _REPLIES)
