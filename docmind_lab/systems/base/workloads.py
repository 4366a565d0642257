"""Base classes of workloads: a graph in several node modes, and systems over HTTP clients of their own."""

from __future__ import annotations

import abc
import contextlib
import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.errors import DocmindLabError, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.network import HttpClients
from docmind_lab.network.live_endpoints import reason_of
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.base.answer_scores import scores_of
from docmind_lab.systems.base.model_calls import chat_model
from docmind_lab.systems.base.node_modes import NodeMode, checked_node_mode
from docmind_lab.systems.base.observer import ObservedSaver, RunCallbacks
from docmind_lab.systems.base.questions import Question
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


class ClientSystem:
    """A system that reaches a model over HTTP clients of its own."""

    addresses: ServiceAddresses
    settings: Settings
    client_retries: int | None
    http: HttpClients

    def _model(self, mode: NodeMode, **options: Any) -> ChatOpenAI:
        options = {"max_retries": self.client_retries, **options}
        return chat_model(mode, self.settings.llm, self.addresses.openai_base_url, self.http, **options)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.http.close()
        shared_loop().run(self._close_async())

    async def _close_async(self) -> None:
        await self.http.aclose()


class ClientWorkload(ClientSystem, GraphWorkload):
    """A workload that reaches a model over HTTP clients of its own."""

    def _build(self) -> None:
        around = self.surroundings
        self.addresses, self.settings, self.client_retries = around.addresses, around.settings, around.client_retries
        self.http = HttpClients(admit=around.settings.admit, max_connections=around.max_connections)


BATCH_SIZE: Final = 64
"""Points per upload: about 200 kB of JSON, well below Qdrant's limit of 32 MB for a request."""


def _vector_store_error(error: ApiException, url: str) -> DocmindLabError:
    """Convert an error of building the index to one that names the vector store and the remedy."""
    remedy = "start Qdrant, or set DOCMIND_DATABASE__QDRANT_URL to where it is"
    if isinstance(error, UnexpectedResponse):
        return ServiceError(f"vector store at {redact_url(url)} answered HTTP {error.status_code}; {remedy}")
    source = getattr(error, "source", error)
    if isinstance(source, DocmindLabError):
        return source
    return ServiceError(f"vector store at {redact_url(url)} cannot be reached ({reason_of(source)}); {remedy}")


class ServiceSystem(ClientSystem):
    """A system that reaches a model and a vector store over HTTP clients of its own."""

    qdrant: QdrantClient
    qdrant_async: AsyncQdrantClient

    def _connect(self) -> None:
        """Make the clients of the vector store."""
        # qdrant-client takes whole seconds only; the seam holds the deadline to the millisecond.
        backstop_s, url = math.ceil(self.settings.database.qdrant_timeout), self.addresses.qdrant_url
        self.qdrant, self.qdrant_async = self.http.qdrant(url, backstop_s), self.http.qdrant_async(url, backstop_s)

    @contextlib.contextmanager
    def _built(self) -> Iterator[None]:
        """Close the clients if the block, which fills the vector store, fails. Raises: an error with the remedy."""
        with contextlib.ExitStack() as unless_built:
            unless_built.callback(self.close)
            try:
                yield
            except ApiException as error:
                raise _vector_store_error(error, self.addresses.qdrant_url) from error
            unless_built.pop_all()

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.qdrant.close()
        super().close()

    async def _close_async(self) -> None:
        await self.qdrant_async.close()
        await super()._close_async()
