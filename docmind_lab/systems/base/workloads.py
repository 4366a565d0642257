"""Base classes of systems over HTTP clients of their own, and of workloads: their graphs in several node modes."""

from __future__ import annotations

import abc
import contextlib
import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.errors import DocmindLabError, ServiceError
from docmind_lab.network import HttpClients
from docmind_lab.network.live_endpoints import reason_of
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.answer_scores import scores_of
from docmind_lab.systems.base.model_calls import chat_model
from docmind_lab.systems.base.node_modes import NodeMode, checked_node_mode
from docmind_lab.systems.base.observer import ObservedSaver, RunCallbacks
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.workload_kind import Surroundings


@dataclass
class ClientSystem:
    """A system that reaches a model over HTTP clients of its own. surroundings: what it is built on."""

    surroundings: Surroundings

    def __post_init__(self) -> None:
        self.http = HttpClients(admit=self._admit, max_connections=self.surroundings.max_connections)
        self._build()

    def _admit(self, url: str) -> None:
        self.surroundings.settings.admit(url)

    def _build(self) -> None:
        """Build what else the system has, besides its clients and its graphs."""

    def _model(self, mode: NodeMode, **options: Any) -> ChatOpenAI:
        around = self.surroundings
        options = {"max_retries": around.client_retries, **options}
        return chat_model(mode, around.settings.llm, around.addresses.openai_base_url, self.http, **options)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.http.close()
        shared_loop().run(self._close_async())

    async def _close_async(self) -> None:
        await self.http.aclose()


@dataclass
class ClientWorkload(ClientSystem, abc.ABC):
    """A system that is built once and run many times, whose answers are scored by the documents they rest on.

    Over "blocking" nodes one run holds up every other that shares its event loop, so such runs follow each other.
    """

    def __post_init__(self) -> None:
        self.node_mode: NodeMode = checked_node_mode(self.surroundings.node_mode)
        self.saver = ObservedSaver()
        super().__post_init__()
        self.graph = self._graph(self.node_mode)

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
        return configured(self.graph, recorder, recorder.run_id)

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a question."""
        return {"messages": [HumanMessage(question.text, id="question")]}

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return source recall and answer score of a run's outcome."""
        return scores_of(question, outcome)

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints."""
        self.saver.delete_thread(run_id)


def configured(
    graph: Runnable,
    recorder: Recorder,
    thread_id: str,
    *,
    named: Mapping[str, Any] = MappingProxyType({}),
    **limits: int,
) -> Runnable:
    """Return the graph for a run that this recorder observes.

    named: what else nodes find in the configuration. limits: the run's `recursion_limit` and `max_concurrency`.
    """
    config: Any = {
        "configurable": {"thread_id": thread_id, **named},
        "callbacks": [RunCallbacks(recorder)],
        **limits,
    }
    return graph.with_config(config)


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
        around = self.surroundings
        backstop_s, url = math.ceil(around.settings.database.qdrant_timeout), around.addresses.qdrant_url
        self.qdrant, self.qdrant_async = self.http.qdrant(url, backstop_s), self.http.qdrant_async(url, backstop_s)

    @contextlib.contextmanager
    def _built(self) -> Iterator[None]:
        """Close the clients if the block, which fills the vector store, fails. Raises: an error with the remedy."""
        with contextlib.ExitStack() as unless_built:
            unless_built.callback(self.close)
            try:
                yield
            except ApiException as error:
                raise _vector_store_error(error, self.surroundings.addresses.qdrant_url) from error
            unless_built.pop_all()

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.qdrant.close()
        super().close()

    async def _close_async(self) -> None:
        await self.qdrant_async.close()
        await super()._close_async()
