"""Base classes of workloads: a graph in several node modes, and systems that search one corpus."""

from __future__ import annotations

import abc
import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.graphs.node_modes import NodeMode, checked_node_mode
from docmind_lab.docmind.retrieval import Question, RetrievedDocument, answer_score
from docmind_lab.docmind.retrieval import source_recall as share_of_gold_topics
from docmind_lab.docmind.system import Corpus, handbook
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.workloads.kinds import Surroundings

_DOCUMENT_FIELDS = ("id", "content", "metadata", "score")


class GraphWorkload(abc.ABC):
    """A system that is built once and run many times, whose answers are scored by the documents they rest on."""

    graph: Runnable
    node_mode: NodeMode

    @abc.abstractmethod
    def _graph(self, mode: NodeMode) -> Runnable:
        """Compile the graph with nodes of this mode."""

    def in_node_mode(self, node_mode: NodeMode) -> Self:
        """Return the workload with the same clients and checkpointer, and a graph with nodes of this mode."""
        if checked_node_mode(node_mode) == self.node_mode:
            return self
        changed = copy.copy(self)
        changed.node_mode, changed.graph = node_mode, self._graph(node_mode)
        return changed

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return source recall and answer score of a run's outcome."""
        documents = [_document(payload) for payload in outcome.documents]
        recall = share_of_gold_topics(question, [document.topic for document in documents])
        return recall, answer_score(question, outcome.answer, documents)


@dataclass
class CorpusWorkload(GraphWorkload):
    """A system that searches a corpus.

    Attributes:
        addresses: Of the services.
        settings: Endpoints are checked against its allowlist at every request.
        client_retries: Each workload says of what; None for its default.
        max_connections: Of each pool of HTTP connections.
        corpus: The handbook when left out.
        node_mode: "own", or what the async alternatives are to find in the nodes instead, "sync" or "blocking".
            Over "blocking" nodes one run holds up every other that shares its event loop, so such runs follow
            each other.
    """

    addresses: ServiceAddresses
    settings: Settings
    client_retries: int | None = None
    max_connections: int = 100
    corpus: Corpus = field(default_factory=handbook)
    node_mode: NodeMode = "own"

    def __post_init__(self) -> None:
        checked_node_mode(self.node_mode)
        self._build()
        self.graph = self._graph(self.node_mode)

    @abc.abstractmethod
    def _build(self) -> None:
        """Build the parts that the graphs of all modes share."""

    @classmethod
    def on(cls, surroundings: Surroundings) -> Self:
        """Build the workload on its surroundings. Raises: as `named_corpus`."""
        return cls(
            surroundings.addresses,
            surroundings.settings,
            client_retries=surroundings.client_retries,
            max_connections=surroundings.max_connections,
            corpus=surroundings.resolve_corpus(),
            node_mode=surroundings.node_mode,
        )


def _document(payload: Mapping[str, Any]) -> RetrievedDocument:
    return RetrievedDocument(**{name: payload[name] for name in _DOCUMENT_FIELDS if name in payload})
