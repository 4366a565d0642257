"""The workload `supervisor`: DocMind's five roles over the language reference, reached over HTTP."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import HumanMessage

from docmind_lab.alternatives.base import Alternative, Outcome, Runnable
from docmind_lab.graphs.colours import Colour, checked_colour, colour_that_runs
from docmind_lab.graphs.observer import ObservedSaver
from docmind_lab.recorder import Recorder
from docmind_lab.retrieval import Question, RetrievedDocument, answer_score
from docmind_lab.retrieval import source_recall as share_of_gold_topics
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.settings import Settings
from docmind_lab.system import Corpus, DocmindSystem, language_reference

# What the openai client does when nobody says otherwise; kept for every alternative that leaves retries to it.
SDK_RETRIES = 2


def retries_of(alternative: Alternative, client_retries: int | None = None) -> str:
    """The level of the `retries` factor for an alternative. client_retries: of the client, None for its default."""
    if alternative.client_retries:
        return f"sdk:{SDK_RETRIES if client_retries is None else client_retries}"
    policy = getattr(alternative, "policy", None)
    return f"budgeted:{policy.retries}" if policy is not None else "none"


def node_colour_of(alternative: Alternative, node_colour: Colour = "own") -> str:
    """The level of the `node_colour` factor for an alternative over nodes of this colour."""
    return colour_that_runs(alternative.node_colour, checked_colour(node_colour))


@dataclass
class SupervisorWorkload:
    """The system, built once and run many times.

    settings: endpoints are checked against its allowlist at every request. client_retries: of the openai client for
    alternatives that leave retries to it; None for its default. corpus: the language reference when left out.
    node_colour: "own", or what the async alternatives are to find in the nodes instead, "sync" or "blocking_async".
    Over "blocking_async" nodes one run holds up every other that shares its event loop, so such runs follow each other.
    """

    addresses: ServiceAddresses
    settings: Settings
    client_retries: int | None = None
    max_connections: int = 100
    corpus: Corpus | None = None
    node_colour: Colour = "own"

    name = "supervisor"

    def __post_init__(self) -> None:
        checked_colour(self.node_colour)
        self.system = DocmindSystem(
            self.addresses,
            self.settings,
            self.corpus or language_reference(),
            client_retries=self.client_retries,
            max_connections=self.max_connections,
        )
        self.saver = ObservedSaver()
        self.graph = self.system.graph(self.saver, colour=self.node_colour)

    def coloured(self, node_colour: Colour) -> Self:
        """The same system, index and checkpointer under a graph whose nodes have this colour."""
        if checked_colour(node_colour) == self.node_colour:
            return self
        made = copy.copy(self)
        made.node_colour = node_colour
        made.graph = self.system.graph(self.saver, colour=node_colour)
        return made

    def runnable(self, recorder: Recorder) -> Runnable:
        """The graph, observed by the run's recorder and with a thread of its own in the checkpointer."""
        return self.system.for_run(self.graph, recorder, recorder.run_id)

    def inputs(self, question: Question) -> dict[str, Any]:
        """The graph's input for a question."""
        return {"messages": [HumanMessage(question.text, id="question")]}

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Source recall and answer score of what the caller got."""
        documents = [_document(payload) for payload in outcome.documents]
        recall = share_of_gold_topics(question, [document.topic for document in documents])
        return recall, answer_score(question, outcome.answer, documents)

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints."""
        self.saver.delete_thread(run_id)

    def close(self) -> None:
        """Close the clients."""
        self.system.close()


def _document(payload: Mapping[str, Any]) -> RetrievedDocument:
    known: Sequence[str] = ("id", "content", "metadata", "score")
    return RetrievedDocument(**{name: payload[name] for name in known if name in payload})
