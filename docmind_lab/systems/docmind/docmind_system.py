"""DocMind as a runnable system: HTTP clients, the index, the model, and the graph over five roles.

Everything slow (imports, clients, the index, the graph) is done when it is made, before any clock of a run starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.bound import bound
from docmind_lab.core.errors import ConfigurationError, EndpointRefused
from docmind_lab.core.levels import SUPERVISOR_ROLE
from docmind_lab.core.settings import Settings
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder, current_recorder
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.systems.base.documents import Library
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.observer import RunCallbacks
from docmind_lab.systems.base.workloads import ServiceSystem
from docmind_lab.systems.docmind.graphs import (
    SUPERVISOR_PROMPT,
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    build_role_agents,
    create_forward_message_tool,
)
from docmind_lab.systems.docmind.graphs.roles import role_middleware
from docmind_lab.systems.docmind.retrieval.index import SearchIndex
from docmind_lab.systems.docmind.retrieval.injection import ROUTER_ROLE
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources
from docmind_lab.systems.docmind.router import RouterEngine


@dataclass
class DocmindSystem(ServiceSystem):
    """The DocMind system on given services.

    addresses: of the model and the vector store. client_retries: of the openai client for alternatives that leave
    retries to it; None for its default.
    """

    addresses: ServiceAddresses
    settings: Settings
    corpus: Library
    client_retries: int | None = None
    max_connections: int = 100

    def __post_init__(self) -> None:
        self._refusals: dict[str, str] = {}
        self.http = HttpClients(admit=self._admit, max_connections=self.max_connections)
        self._connect()
        with self._built():
            self.index = SearchIndex.build(self.qdrant, self.corpus)
        self.model = self._chat_model()
        injects = self.settings.agents.enable_router_injection
        self.resources = RetrievalResources(
            self.index,
            self.qdrant,
            self.qdrant_async,
            router_injection=injects,
            router_engine=self._router() if injects else None,
            admit=self.settings.admit,
        )

    def _admit(self, url: str) -> None:
        """Check the URL as `Settings.admit` does, and remember a refusal for the current run."""
        try:
            self.settings.admit(url)
        except EndpointRefused as error:
            if (recorder := current_recorder()) is not None:
                self._refusals[recorder.run_id] = str(error)
            raise

    def refusal_of(self, run_id: str) -> str:
        """Return once why a request of a run was not sent, which clients hide; empty if all were sent."""
        return self._refusals.pop(run_id, "")

    def _router(self) -> RouterEngine:
        """Return the lab's own engine, for runs whose context has none. Its choice costs a model call."""
        calls = ModelCalls(ROUTER_ROLE, request_timeout_s=self.settings.llm.request_timeout_seconds)
        # The choice is no part of the answer: LangGraph leaves calls with this tag out of streamed messages.
        model_client = ModelClient(self.model, calls, tags=("nostream",))
        return RouterEngine(self.index, self.qdrant, self.qdrant_async, model_client)

    def _chat_model(self, *, streaming: bool = False, mode: NodeMode = "own") -> ChatOpenAI:
        # Without `stream_usage` a streamed reply does not count its tokens.
        return self._model(mode, streaming=streaming, stream_usage=streaming)

    def graph(
        self,
        checkpointer: BaseCheckpointSaver[Any],
        store: BaseStore | None = None,
        *,
        streaming: bool = False,
        mode: NodeMode = "own",
    ) -> Runnable:
        """Compile the graph.

        streaming: the model sends its replies token by token, and callbacks hear of each. mode: of the async side of
        model and tools, see `base/node_modes.py`; for replies in one piece only.
        Raises: ConfigurationError for both.
        """
        if streaming and mode != "own":
            raise ConfigurationError(f"node_mode {mode!r} is for replies in one piece; leave streaming off")
        is_other = streaming or mode != "own"
        model = self._chat_model(streaming=streaming, mode=mode) if is_other else self.model
        timeout_s = self.settings.llm.request_timeout_seconds
        graph = build_multi_agent_supervisor_graph(
            build_role_agents(model, resources=self.resources, request_timeout_s=timeout_s, mode=mode),
            model=model,
            prompt=SUPERVISOR_PROMPT,
            state_schema=MultiAgentGraphState,
            extra_tools=[create_forward_message_tool(SUPERVISOR_ROLE)],
            middleware=role_middleware(SUPERVISOR_ROLE, timeout_s),
            params=SupervisorBuildParams(
                supervisor_name=SUPERVISOR_ROLE,
                max_concurrent_agents=self.side_by_side,
            ),
        )
        return graph.compile(checkpointer=checkpointer, store=store)

    def for_run(
        self,
        graph: Runnable,
        recorder: Recorder,
        thread_id: str,
        *,
        context: Any = None,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> Runnable:
        """Return the graph configured for one run: its recorder, its thread, and the settings' limits."""
        configured = graph.with_config(
            {
                "configurable": {"thread_id": thread_id},
                "callbacks": [RunCallbacks(recorder), *callbacks],
                "recursion_limit": self.settings.agents.max_workflow_depth,
                "max_concurrency": self.side_by_side,
            }
        )
        return configured if context is None else bound(configured, context=context)

    @property
    def side_by_side(self) -> int:
        """How many agents may run at once."""
        agents = self.settings.agents
        return agents.max_concurrent_agents if agents.enable_parallel_tool_execution else 1
