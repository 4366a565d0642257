"""Entities and sentences found in a text without a model: what is capitalised, looks like code, or is being defined.

names_in("A checkpoint is the state of a graph. ChatOpenAI has `None`.")
# ["checkpoint", "ChatOpenAI", "None"]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from docmind_lab.workloads.staged.calls import MOST_CHARACTERS_OF_A_NAME
from docmind_lab.workloads.staged.graph_store import key_of
from docmind_lab.workloads.staged.parsing import ToolCall

_CODE = r"`(?P<code>[^`\n]{2,60})`"
_LINK = r"\[(?P<link>[^\]\n]{2,60})\]\([^)\s]*\)"
# ChatOpenAI, deadline_ts, Retry-After: two capitals, an underscore, or capitals joined by a hyphen.
_TERM = r"(?P<term>\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b|\b[A-Z][a-z]+(?:-[A-Z][a-z]+)+\b)"
_NAME = r"(?P<name>(?<=[a-z,;] )[A-Z][\w'’]+(?: [A-Z][\w'’]+)*|\b[A-Z][\w'’]+(?: [A-Z][\w'’]+)+)"
_DEFINED = r"(?:(?<=[.!?\n] )|(?<=\n)|^)(?:An?|The) (?P<defined>[a-z][\w-]+(?: [a-z][\w-]+)?) (?:is|are|has|bounds) "
_FOUND = re.compile("|".join((_CODE, _LINK, _TERM, _NAME, _DEFINED)))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"“])|\n\s*\n")
_NO_NAMES = frozenset({"i", "the", "this", "that", "it"})


def names_in(text: str, most: int | None = None) -> list[str]:
    """Names in a text, each once, in the order in which they come."""
    found: dict[str, str] = {}
    for match in _FOUND.finditer(text):
        name = " ".join((match.group(match.lastgroup or 0)).split()).strip("'’")
        if 2 <= len(name) <= MOST_CHARACTERS_OF_A_NAME and key_of(name) not in _NO_NAMES:
            found.setdefault(key_of(name), name)
    return list(found.values())[:most]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, white space folded."""
    return [folded for part in _SENTENCE_END.split(text) if (folded := " ".join(part.split()))]


def generated_calls(said: str, text: str, most: int) -> list[ToolCall]:
    """Calls made up from what the model said and from the text itself, at most `most`.

    Names that the model gave come first, if the text has them too. Each name is an entity, with the sentence that has
    it as an observation; two names of one sentence are related by what stands between them, if that is short.
    """
    folded = " ".join(text.split()).casefold()
    grounded = [name for name in names_in(said) if key_of(name) in folded]
    names = {key_of(name): name for name in grounded}
    for name in names_in(text):
        names.setdefault(key_of(name), name)
    sentences = sentences_of(text)
    chosen = list(names.values())[: max(1, most * 2 // 5)]
    calls = [ToolCall("create_entity", {"name": name, "type": "Term"}) for name in chosen]
    for name in chosen:
        sentence = next((one for one in sentences if key_of(name) in one.casefold()), "")
        if sentence:
            calls.append(ToolCall("add_observation", {"entity": name, "text": sentence}))
    calls += _relations(chosen, sentences)
    return calls[:most]


_MOST_BETWEEN = 40


def _relations(names: Sequence[str], sentences: Sequence[str]) -> list[ToolCall]:
    made = []
    for sentence in sentences:
        places = sorted((at, name) for name in names if (at := sentence.casefold().find(key_of(name))) >= 0)
        for (at, first), (other_at, second) in itertools.pairwise(places):
            between = sentence[at + len(first) : other_at].strip(" ,;:`[]()")
            if between and len(between) <= _MOST_BETWEEN and ".md" not in between:
                relation = {"subject": first, "predicate": between, "object": second}
                made.append(ToolCall("create_relation", relation))
    return made
