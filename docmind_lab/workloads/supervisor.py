"""The workload `supervisor`: DocMind's five roles over the language reference, reached over HTTP."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import HumanMessage

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.graphs.colours import Colour, checked_colour
from docmind_lab.graphs.observer import ObservedSaver
from docmind_lab.recorder import Recorder
from docmind_lab.retrieval import Question, RetrievedDocument, answer_score, load_questions
from docmind_lab.retrieval import source_recall as share_of_gold_topics
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.settings import Settings
from docmind_lab.system import Corpus, DocmindSystem, language_reference
from docmind_lab.workloads.kinds import Defaults, Surroundings, WorkloadKind


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


def _built(surroundings: Surroundings) -> SupervisorWorkload:
    return SupervisorWorkload(
        surroundings.addresses,
        surroundings.settings,
        client_retries=surroundings.client_retries,
        max_connections=surroundings.max_connections,
        corpus=surroundings.searched(),
        node_colour=surroundings.node_colour,
    )


KIND = WorkloadKind(
    name="supervisor",
    title="DocMind supervisor",
    asked="questions",
    cases=load_questions,
    build=_built,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(20.0, 40, "heavy_tail/3"), "wall": Defaults(2.0, 8, "typical/6")},
    roles=("supervisor", "router", "planner", "retrieval", "synthesis", "validation"),
    takes_questions=True,
)
"""DocMind's five roles."""
