"""A research system on services: clients through the seam, filled sources, the model in its four roles, the graph.

Everything slow is done when it is made, before any clock of a run starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.runnables.config import merge_configs
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.base.documents import Library, handbook
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.node_modes import NodeMode, chat_model
from docmind_lab.systems.base.services import ServiceSystem
from docmind_lab.systems.research import prompts
from docmind_lab.systems.research.loop import SourceLoop
from docmind_lab.systems.research.research_graph import Compiled, ResearchGraph, config_of
from docmind_lab.systems.research.research_ledger import ResearchLedger
from docmind_lab.systems.research.sources import SourceSearch, SourceSpec, build_sources, load_sources
from docmind_lab.systems.research.tasks import ResearchLimits, ResearchTask

_ROLES = (prompts.WRITER, prompts.FILTER, prompts.JUDGE, prompts.SYNTHESIS)


# The recorder of an unmeasured research only gives its calls their keys; no deadline is in force.
_NO_DEADLINE_S = 1e9


def recorder_of(task: ResearchTask, seed: int) -> Recorder:
    """Return a recorder for a research that is not measured, so that its calls have roles, places and a seed."""
    return Recorder(f"research-{task.id}", seed, Deadline.after(_NO_DEADLINE_S))


@dataclass
class ResearchSystem(ServiceSystem):
    """Everything a research needs on given services: clients, sources, limits.

    corpus: what the sources hold parts of; the handbook when left out. sources: those that come with the lab
    when left out. limits: of every research that does not bring its own ledger.

    Raises: ConfigurationError for limits that name no source and for a local store, which has no network and so nothing
    to wait for; ServiceError for a vector store that cannot be reached.
    """

    addresses: ServiceAddresses
    settings: Settings
    limits: ResearchLimits = field(default_factory=ResearchLimits)
    corpus: Library = field(default_factory=handbook)
    specs: Sequence[SourceSpec] = field(default_factory=load_sources)
    max_connections: int = 100

    def __post_init__(self) -> None:
        self.limits.check_sources(spec.name for spec in self.specs)
        if self.settings.database.qdrant_path:
            raise ConfigurationError("database.qdrant_path has no network; set database.qdrant_url, or leave both out")
        self.http = HttpClients(admit=self.settings.admit, max_connections=self.max_connections)
        self._connect()
        with self._built():
            self.sources = build_sources(self.qdrant, self.specs, self.corpus.chunks)

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
        """Return a ledger under these limits or the system's own. Raises: ConfigurationError: an unknown source."""
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
