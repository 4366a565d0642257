"""What workloads that search one corpus have in common: what they are built on, their colours, and their scores."""

from __future__ import annotations

import abc
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.graphs.colours import Colour, checked_colour
from docmind_lab.docmind.retrieval import Question, RetrievedDocument, answer_score
from docmind_lab.docmind.retrieval import source_recall as share_of_gold_topics
from docmind_lab.docmind.system import Corpus
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.workloads.kinds import Surroundings

_OF_A_DOCUMENT: Sequence[str] = ("id", "content", "metadata", "score")


@dataclass
class CorpusWorkload(abc.ABC):
    """A system over a corpus, built once and run many times.

    settings: endpoints are checked against its allowlist at every request. client_retries: each workload says of what;
    None for its default. corpus: the language reference when left out. node_colour: "own", or what the async
    alternatives are to find in the nodes instead, "sync" or "blocking_async". Over "blocking_async" nodes one run
    holds up every other that shares its event loop, so such runs follow each other.
    """

    addresses: ServiceAddresses
    settings: Settings
    client_retries: int | None = None
    max_connections: int = 100
    corpus: Corpus | None = None
    node_colour: Colour = "own"

    def __post_init__(self) -> None:
        checked_colour(self.node_colour)
        self._build()
        self.graph = self._graph(self.node_colour)

    @abc.abstractmethod
    def _build(self) -> None:
        """Make what all colours of the graph share."""

    @abc.abstractmethod
    def _graph(self, colour: Colour) -> Runnable:
        """The compiled graph with nodes of this colour."""

    @classmethod
    def on(cls, surroundings: Surroundings) -> Self:
        """The workload on its surroundings. Raises: as `named_corpus`."""
        return cls(
            surroundings.addresses,
            surroundings.settings,
            client_retries=surroundings.client_retries,
            max_connections=surroundings.max_connections,
            corpus=surroundings.searched(),
            node_colour=surroundings.node_colour,
        )

    def coloured(self, node_colour: Colour) -> Self:
        """The same clients, index and checkpointer under a graph whose nodes have this colour."""
        if checked_colour(node_colour) == self.node_colour:
            return self
        made = copy.copy(self)
        made.node_colour, made.graph = node_colour, self._graph(node_colour)
        return made

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Source recall and answer score of what the caller got."""
        documents = [_document(payload) for payload in outcome.documents]
        recall = share_of_gold_topics(question, [document.topic for document in documents])
        return recall, answer_score(question, outcome.answer, documents)


def _document(payload: Mapping[str, Any]) -> RetrievedDocument:
    return RetrievedDocument(**{name: payload[name] for name in _OF_A_DOCUMENT if name in payload})
