"""The agent of the staged ladder in the scripted model: it extracts a graph from the passage it is given.

What it extracts is found in the passage, by rules. How it says it is drawn from the passage's text (the same passage,
the same manner): real models do not always call the tools that they have, and each rung of the ladder is for one of the
ways in which they do not. The shares are of this simulation's making and say nothing about any real model.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence

from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.services.hosts import add_roles
from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.extraction import sentences

ROLE = "staged_primary"
MOST_ENTITIES = 6

MANNERS: Mapping[str, float] = {
    "tools": 0.46,
    "relations_first": 0.10,
    "text": 0.12,
    "damaged": 0.10,
    "wordy": 0.08,
    "prose": 0.08,
    "mute": 0.06,
}
"""How the model says what it found → how often.

tools: native calls, entities, then observations, then relations. relations_first: relations before their entities are
there. text: calls as JSON in its text. damaged: the same in Python's quotes, with commas too many. wordy: so much JSON
that a limit of tokens cuts it. prose: a sentence about the passage. mute: nothing.
"""

# The first number with which the passages that the workload comes with meet every manner, and one of them the last rung
# of the ladder too. It decides which passage meets which manner, and was looked at for nothing else.
_KEY = 3

_CODE = re.compile(r"`([^`\n]{2,60})`|\[([^\]\n]{2,60})\]\([^)\s]*\)")
_TERM = re.compile(
    r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b|\b[A-Z][a-z]+(?:-[A-Z][a-z]+)+\b"
)
_VERBS = (
    "is|are|has|have|keeps|bounds|means|needs|takes|works|does|allows|goes|may|can|must|will|that|which|rounds|ignores|"
    "answers|obeys|counts|makes|builds|starts|ends"
)
_SUBJECT = re.compile(rf"\b(?:An?|The|Each|Every|an?|the|each) ([a-z][\w-]+(?: [a-z][\w-]+)??) (?:{_VERBS})\b")
_OBJECT = re.compile(
    r"\b(?:of|by|at|in|to|with|from|under|for|until|between) (?:an?|the|its) ([a-z][\w-]+(?: [a-z][\w-]+)?)(?=[.,;:])"
)
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")


def entities_in(passage: str) -> list[str]:
    """Return at most six entities of a passage: names of code, subjects and objects of its sentences."""
    entities: dict[str, str] = {}
    plain = _LINK_TARGET.sub("]", passage).replace("[", "").replace("]", "")
    for match in _CODE.finditer(passage):
        entities.setdefault((match[1] or match[2]).casefold(), match[1] or match[2])
    for pattern in (_TERM, _SUBJECT, _OBJECT):
        for match in pattern.finditer(plain):
            name = " ".join((match[1] if pattern.groups else match[0]).split())
            entities.setdefault(name.casefold(), name)
    return list(entities.values())[:MOST_ENTITIES]


def relations_in(passage: str, names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return (subject, predicate, object) for two of the names that are close together in a sentence."""
    triples = []
    plain = _LINK_TARGET.sub("]", passage).replace("[", "").replace("]", "").replace("`", "")
    for sentence in sentences(plain):
        folded = sentence.casefold()
        places = sorted((folded.find(name.casefold()), name) for name in names if name.casefold() in folded)
        for (at, first), (other_at, second) in itertools.pairwise(places):
            between = sentence[at + len(first) : other_at].strip(" ,;:")
            if 0 < len(between) <= 60:
                triples.append((first, between, second))
    return triples


def manner_of(passage: str) -> str:
    """Return the manner in which the model answers to a passage: one of `MANNERS`, drawn from its text."""
    drawn = keyed_uniform("staged", "manner", _KEY, passage) * sum(MANNERS.values())
    for manner, share in MANNERS.items():
        drawn -= share
        if drawn < 0:
            return manner
    return "tools"


def _entities(passage: str) -> list[ToolCall]:
    return [ToolCall("create_entity", {"name": name, "type": _type_of(name)}) for name in entities_in(passage)]


def _type_of(name: str) -> str:
    return "Code" if "_" in name or re.search(r"[a-z][A-Z]", name) else "Term"


def _observations(passage: str) -> list[ToolCall]:
    calls = []
    all_sentences = sentences(passage)
    for name in entities_in(passage):
        sentence = next((one for one in all_sentences if name.casefold() in one.casefold()), "")
        if sentence:
            calls.append(ToolCall("add_observation", {"entity": name, "text": sentence}))
    return calls


def _relations(passage: str) -> list[ToolCall]:
    relations = relations_in(passage, entities_in(passage))
    return [ToolCall("create_relation", {"subject": s, "predicate": p, "object": o}) for s, p, o in relations]


_PHASES: Mapping[str, Callable[[str], list[ToolCall]]] = {
    "create_entity": _entities,
    "add_observation": _observations,
    "create_relation": _relations,
}
_ORDERS = {
    "tools": ("create_entity", "add_observation", "create_relation"),
    "relations_first": ("create_relation", "create_entity", "add_observation"),
}


def _primary(conversation: Conversation) -> Reply:
    """Return the agent's next reply: each kind of call in a round of its own, then a text that says it is done."""
    passage = conversation.question
    manner = manner_of(passage)
    if manner in _ORDERS:
        called = {call.name for call in conversation.called_tools()}
        for tool in _ORDERS[manner]:
            if tool in conversation.tools and tool not in called and (calls := _PHASES[tool](passage)):
                return Reply(tool_calls=tuple(calls))
        return Reply("All that the passage says is written." if called else "The passage names nothing to write.")
    return Reply(_REPLIES[manner](passage))


def _as_objects(calls: Sequence[ToolCall]) -> list[dict[str, object]]:
    return [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]


def _text(passage: str) -> str:
    return f"```json\n{json.dumps({'tool_calls': _as_objects(_entities(passage))})}\n```"


def _damaged(passage: str) -> str:
    calls = _as_objects([*_entities(passage), *_relations(passage)])
    return "I would write:\n[" + "".join(f"{call!r},\n" for call in calls) + "]"


def _wordy(passage: str) -> str:
    calls = [*_entities(passage), *_observations(passage), *_relations(passage)]
    written = (json.dumps(call, indent=4) for call in _as_objects(calls))
    return "\n\n".join(
        f"Step {number}. Now I am going to write this:\n{call}" for number, call in enumerate(written, 1)
    )


def _prose(passage: str) -> str:
    names = entities_in(passage)
    return f"The passage is about {', '.join(names)}." if names else "The passage is about nothing in particular."


_REPLIES: Mapping[str, Callable[[str], str]] = {
    "text": _text,
    "damaged": _damaged,
    "wordy": _wordy,
    "prose": _prose,
    "mute": lambda passage: "",
}

add_roles(__name__, {"turn a passage of a document into a knowledge graph": ROLE}, {ROLE: _primary})
