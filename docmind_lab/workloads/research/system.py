"""A research system on services: clients through the seam, filled sources, the model in its four roles, the graph.

Everything slow is done when it is made, before any clock of a run starts.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.runnables.config import merge_configs
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from qdrant_client.http.exceptions import ApiException

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.graphs.model_calls import ModelCalls
from docmind_lab.docmind.graphs.model_client import ModelClient
from docmind_lab.docmind.graphs.node_modes import NodeMode, chat_model
from docmind_lab.docmind.system import Corpus, handbook
from docmind_lab.network import HttpClients
from docmind_lab.network.endpoints import reason_of
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.workloads.research import prompts
from docmind_lab.workloads.research.graph import Compiled, ResearchGraph, config_of
from docmind_lab.workloads.research.ledger import ResearchLedger
from docmind_lab.workloads.research.loop import SourceLoop
from docmind_lab.workloads.research.searching import SourceSearch
from docmind_lab.workloads.research.sources import SourceSpec, build_sources, load_sources
from docmind_lab.workloads.research.tasks import ResearchLimits, ResearchTask

_ROLES = (prompts.WRITER, prompts.FILTER, prompts.JUDGE, prompts.SYNTHESIS)


# The recorder of an unmeasured research only gives its calls their keys; no deadline is in force.
_NO_DEADLINE_S = 1e9


def recorder_of(task: ResearchTask, seed: int) -> Recorder:
    """Return a recorder for a research that is not measured, so that its calls have roles, places and a seed."""
    return Recorder(f"research-{task.id}", seed, Deadline.after(_NO_DEADLINE_S))


@dataclass
class ResearchSystem:
    """Everything a research needs on given services: clients, sources, limits.

    corpus: what the sources hold parts of; the handbook when left out. sources: those that come with the lab
    when left out. limits: of every research that does not bring its own ledger.

    Raises: ConfigurationError for limits that name no source and for a local store, which has no network and so nothing
    to wait for; ServiceError for a vector store that cannot be reached.
    """

    addresses: ServiceAddresses
    settings: Settings
    limits: ResearchLimits = field(default_factory=ResearchLimits)
    corpus: Corpus = field(default_factory=handbook)
    specs: Sequence[SourceSpec] = field(default_factory=load_sources)
    max_connections: int = 100

    def __post_init__(self) -> None:
        self.limits.check_sources(spec.name for spec in self.specs)
        database = self.settings.database
        if database.qdrant_path:
            raise ConfigurationError("database.qdrant_path has no network; set database.qdrant_url, or leave both out")
        self.http = HttpClients(admit=self.settings.admit, max_connections=self.max_connections)
        # qdrant-client takes whole seconds only; the seam holds the deadline to the millisecond.
        backstop_s, url = math.ceil(database.qdrant_timeout), self.addresses.qdrant_url
        self.qdrant = self.http.qdrant(url, backstop_s)
        self.qdrant_async = self.http.qdrant_async(url, backstop_s)
        with contextlib.ExitStack() as unless_built:
            unless_built.callback(self.close)
            try:
                self.sources = build_sources(self.qdrant, self.specs, self.corpus.chunks)
            except ApiException as error:
                remedy = "start Qdrant, or set DOCMIND_DATABASE__QDRANT_URL to where it is"
                reason = reason_of(getattr(error, "source", error))
                raise ServiceError(f"vector store at {url} cannot be used ({reason}); {remedy}") from error
            unless_built.pop_all()

    def loop(self, mode: NodeMode = "own") -> SourceLoop:
        """Return the loop that works on a source, with nodes of this mode."""
        model = self._model(mode)
        calls = {role: ModelCalls(role, request_timeout_s=self.limits.llm_timeout_seconds) for role in _ROLES}
        return SourceLoop(
            model_clients={role: ModelClient(model, calls[role]) for role in _ROLES},
            search_source=SourceSearch(self.qdrant, self.qdrant_async, mode),
        )

    def graph(self, checkpointer: BaseCheckpointSaver[Any] | None = None, mode: NodeMode = "own") -> Compiled:
        """Compile the research graph; `configure` binds it to a ledger."""
        return ResearchGraph(self.loop(mode), self.sources).compile(checkpointer)

    def configure(self, graph: Compiled, ledger: ResearchLedger, thread_id: str) -> Compiled:
        """Return the graph configured for one research: its ledger and thread."""
        return graph.with_config(merge_configs(config_of(ledger), {"configurable": {"thread_id": thread_id}}))

    def ledger(self, folder: Path | None = None, limits: ResearchLimits | None = None) -> ResearchLedger:
        """Return a ledger for one research, under these limits or the system's own.

        Raises: ConfigurationError for limits that name no source.
        """
        if limits is not None:
            limits.check_sources(self.sources)
        return ResearchLedger(limits or self.limits, folder)

    def _model(self, mode: NodeMode) -> ChatOpenAI:
        return chat_model(
            mode,
            self.settings.llm,
            self.addresses.openai_base_url,
            self.http,
            timeout=self.limits.llm_timeout_seconds,
            # The loop tries again by itself, and never past its budget, which a client knows nothing of.
            max_retries=0,
        )

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.qdrant.close()
        self.http.close()
        shared_loop().run(self._close_async())

    async def _close_async(self) -> None:
        await self.qdrant_async.close()
        await self.http.aclose()
