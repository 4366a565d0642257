"""Base classes of workloads: a graph in several node modes, and one over HTTP clients of its own."""

from __future__ import annotations

import abc
import copy
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.node_modes import NodeMode, chat_model, checked_node_mode
from docmind_lab.systems.base.observer import ObservedSaver, RunCallbacks
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.scores import scores_of
from docmind_lab.systems.base.workload_kind import Surroundings


@dataclass
class GraphWorkload(abc.ABC):
    """A system that is built once and run many times, whose answers are scored by the documents they rest on.

    surroundings: what it is built on. Over "blocking" nodes one run holds up every other that shares its event loop, so
    such runs follow each other.
    """

    surroundings: Surroundings

    def __post_init__(self) -> None:
        self.node_mode: NodeMode = checked_node_mode(self.surroundings.node_mode)
        self.saver = ObservedSaver()
        self._build()
        self.graph = self._graph(self.node_mode)

    @abc.abstractmethod
    def _build(self) -> None:
        """Build the parts that the graphs of all modes share."""

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

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the run's recorder, with a thread of its own in the checkpointer."""
        return self._configured(recorder)

    def _configured(self, recorder: Recorder, recursion_limit: int | None = None, **named: Any) -> Runnable:
        """Return the graph for a run. named: what else its nodes find in the configuration."""
        configured: RunnableConfig = {
            "configurable": {"thread_id": recorder.run_id, **named},
            "callbacks": [RunCallbacks(recorder)],
        }
        if recursion_limit is not None:
            configured["recursion_limit"] = recursion_limit
        return self.graph.with_config(configured)

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a question."""
        return {"messages": [HumanMessage(question.text, id="question")]}

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return source recall and answer score of a run's outcome."""
        return scores_of(question, outcome)

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints."""
        self.saver.delete_thread(run_id)

    @abc.abstractmethod
    def close(self) -> None:
        """Close the clients."""


class ClientWorkload(GraphWorkload):
    """A system over HTTP clients of its own."""

    def _build(self) -> None:
        settings = self.surroundings.settings
        self.http = HttpClients(admit=settings.admit, max_connections=self.surroundings.max_connections)

    def _model(self, mode: NodeMode, **options: Any) -> ChatOpenAI:
        around = self.surroundings
        llm, base_url = around.settings.llm, around.addresses.openai_base_url
        return chat_model(mode, llm, base_url, self.http, max_retries=around.client_retries, **options)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.http.close()
        shared_loop().run(self.http.aclose())
