"""The inputs of the workload `staged`: passages of the handbook, with the entities and relations that they contain.

The list was written by reading the passages, before anything that extracts was run on them, and was not tuned since.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from docmind_lab.core.levels import NAN
from docmind_lab.systems.base.documents import handbook
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.staged.stage_calls import gold_entity, gold_relation
from docmind_lab.systems.staged.staged_events import digest


@dataclass(frozen=True)
class StagedChunk(Question):
    """A passage to process. gold: all that counts as found; gold_topics has it as digests, as events name it."""

    source: str = "text"
    chunk: str = "1"
    gold: tuple[str, ...] = ()


def staged_chunks(corpus: str = "handbook") -> tuple[StagedChunk, ...]:
    """Return the passages in file order, the same object on every call: the handbook's, whatever the corpus."""
    return _load_chunks()


@functools.cache
def _load_chunks() -> tuple[StagedChunk, ...]:
    file = importlib.resources.files("docmind_lab.core.data").joinpath("staged_chunks.json")
    passages = {chunk.id: chunk for chunk in handbook().chunks}
    chunks = []
    for entry in json.loads(file.read_text(encoding="utf-8")):
        passage = passages[entry["chunk"]]
        source, _, part = entry["chunk"].partition("#")
        gold = _gold_entries(entry)
        chunks.append(
            StagedChunk(
                id=entry["chunk"],
                text=f"{passage.section}\n\n{passage.text}",
                gold_topics=tuple(digest(counted) for counted in gold),
                source=source.removesuffix(".md"),
                chunk=part,
                gold=gold,
            )
        )
    return tuple(chunks)


def _gold_entries(entry: Mapping[str, Any]) -> tuple[str, ...]:
    entities = [gold_entity(name) for name in entry["entities"]]
    return (*entities, *(gold_relation(relation["subject"], relation["object"]) for relation in entry["relations"]))


def found_in(documents: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the gold entries that a run's documents, its confirmed writes, satisfy; each once."""
    labels = (label for document in documents for label in document["metadata"].get("counts_as", ()))
    return tuple(dict.fromkeys(labels))


def recall_and_f1(gold: Iterable[str], counted: Iterable[str]) -> tuple[float, float]:
    """Return the recall of the gold, and F1, its harmonic mean with the precision; NaN without gold."""
    labels, had = set(gold), set(counted)
    if not labels:
        return NAN, NAN
    hits = len(labels & had)
    if not hits:
        return 0.0, 0.0
    recall, precision = hits / len(labels), hits / len(had)
    return recall, 2 * recall * precision / (recall + precision)
