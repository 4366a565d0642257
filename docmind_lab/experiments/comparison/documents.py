"""The documents that a comparison searches and the questions it asks: the lab's own, or the user's."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.documents import LibraryPlace, read_questions
from docmind_lab.systems.base.documents.library import named_corpus
from docmind_lab.systems.base.questions import Question, require_handbook
from docmind_lab.systems.base.workload_kind import WorkloadKind
from docmind_lab.systems.system_catalogue import System


@dataclass(frozen=True)
class Documents:
    """A corpus and the questions to ask about it.

    corpus: the handbook by its name, or the place of the user's. questions: the user's; empty for the handbook's.
    """

    corpus: str | LibraryPlace = HANDBOOK
    questions: tuple[Question, ...] = ()

    @property
    def name(self) -> str:
        """Name of the corpus."""
        return str(self.corpus)

    def cases(self, kind: WorkloadKind) -> tuple[Question, ...]:
        """Return the questions for a workload. Raises: ConfigurationError if it cannot take them, or there are none."""
        if not (isinstance(self.corpus, LibraryPlace) or self.questions):
            if kind.takes_questions:
                require_handbook(self.name)
            return kind.cases(self.name)
        if not kind.takes_questions:
            raise ConfigurationError(
                f"corpus and questions: workload {kind.name} is asked {kind.asked} of its own; leave documents and "
                "questions of yours out, or choose a workload that searches for answers, such as supervisor"
            )
        if not self.questions:
            raise ConfigurationError(
                "questions: documents of your own come without; name a file with questions to them (questions=..., "
                "--questions FILE)"
            )
        return self.questions

    def design(self) -> dict[str, Any]:
        """Return what identifies the corpus and the questions, as JSON: names and digests, no text and no path."""
        # Only of the user's own: the ids of other studies stay what they were.
        entries: dict[str, Any] = {"corpus": self.name}
        if isinstance(self.corpus, LibraryPlace):
            place = self.corpus
            facts = {"fingerprint": place.fingerprint, "documents": place.documents, "passages": place.passages}
            entries["library"] = facts
        if self.questions:
            entries["questions"] = {"digest": _digest(self.questions), "count": len(self.questions)}
        return entries


def documents_in(system: System) -> Documents:
    """Return the documents and questions that a system names.

    Raises: ConfigurationError for a path that is no folder, and as `read_questions` and `LibraryPlace.of`.
    """
    corpus, questions = getattr(system, "documents", HANDBOOK), getattr(system, "questions", None)
    place: str | LibraryPlace = HANDBOOK
    if Path(corpus).is_dir() and corpus != HANDBOOK:
        place = LibraryPlace.of(corpus)
    elif questions is None and isinstance(corpus, str) and os.sep not in corpus:
        # A workload from another package may have corpora of its own, and itself refuses names it does not know.
        return Documents(corpus)
    else:
        require_handbook(os.fspath(corpus))
    if questions is None:
        return Documents(place)
    topics = frozenset(chunk.topic for chunk in named_corpus(place).chunks)
    return Documents(place, read_questions(questions, topics=topics))


@functools.cache
def _digest(questions: tuple[Question, ...]) -> str:
    """Return a digest of the questions that does not depend on how their file is laid out."""
    text = json.dumps([dataclasses.asdict(question) for question in questions], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
