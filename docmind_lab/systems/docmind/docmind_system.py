"""DocMind as a system and as the workload `supervisor`: HTTP clients, the index, and the graph over five roles.

Everything slow (imports, clients, the index, the graph) is done when it is made, before any clock of a run starts.
"""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.bound import bound
from docmind_lab.core.errors import EndpointRefused
from docmind_lab.core.levels import SUPERVISOR_ROLE
from docmind_lab.network.recorder import Recorder, current_recorder
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind, with_policies_but
from docmind_lab.systems.base.workloads import ClientWorkload, ServiceSystem, configured
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


class DocmindSystem(ServiceSystem):
    """The DocMind system on given services."""

    def _build(self) -> None:
        self._refusals: dict[str, str] = {}
        self._connect()
        around = self.surroundings
        with self._built():
            self.index = SearchIndex.build(self.qdrant, around.resolve_corpus())
        injects = around.settings.agents.enable_router_injection
        self.resources = RetrievalResources(
            self.index,
            self.qdrant,
            self.qdrant_async,
            router_injection=injects,
            router_engine=self._router() if injects else None,
            admit=around.settings.admit,
        )

    def _admit(self, url: str) -> None:
        """Check the URL as `Settings.admit` does, and remember a refusal for the current run."""
        try:
            super()._admit(url)
        except EndpointRefused as error:
            if (recorder := current_recorder()) is not None:
                self._refusals[recorder.run_id] = str(error)
            raise

    def refusal_of(self, run_id: str) -> str:
        """Return once why a request of a run was not sent, which clients hide; empty if all were sent."""
        return self._refusals.pop(run_id, "")

    def _router(self) -> RouterEngine:
        """Return the lab's own engine, for runs whose context has none. Its choice costs a model call."""
        calls = ModelCalls(ROUTER_ROLE, request_timeout_s=self.surroundings.settings.llm.request_timeout_seconds)
        # The choice is no part of the answer: LangGraph leaves calls with this tag out of streamed messages.
        model_client = ModelClient(self._model("own"), calls, tags=("nostream",))
        return RouterEngine(self.index, self.qdrant, self.qdrant_async, model_client)

    def compiled(
        self,
        checkpointer: BaseCheckpointSaver[Any],
        store: BaseStore | None = None,
        *,
        mode: NodeMode = "own",
    ) -> Runnable:
        """Compile the graph. mode: of the async side of model and tools, see `base/node_modes.py`."""
        model = self._model(mode)
        timeout_s = self.surroundings.settings.llm.request_timeout_seconds
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
    ) -> Runnable:
        """Return the graph configured for one run: its recorder, its thread, and the settings' limits."""
        depth = self.surroundings.settings.agents.max_workflow_depth
        for_thread = configured(
            graph,
            recorder,
            thread_id,
            recursion_limit=depth,
            max_concurrency=self.side_by_side,
        )
        return for_thread if context is None else bound(for_thread, context=context)

    @property
    def side_by_side(self) -> int:
        """How many agents may run at once."""
        agents = self.surroundings.settings.agents
        return agents.max_concurrent_agents if agents.enable_parallel_tool_execution else 1


class SupervisorWorkload(DocmindSystem, ClientWorkload):
    """The DocMind system as a workload.

    The client retries of its surroundings are the openai client's, for alternatives that leave retries to it.
    """

    name = "supervisor"

    def _graph(self, mode: NodeMode) -> Runnable:
        return self.compiled(self.saver, mode=mode)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the recorder, with a thread of its own in the checkpointer."""
        return self.for_run(self.graph, recorder, recorder.run_id)


KIND = WorkloadKind(
    name="supervisor",
    title="DocMind supervisor",
    asked="questions",
    cases=load_questions,
    build=SupervisorWorkload,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(20.0, 40, "heavy_tail/3"), "wall": Defaults(2.0, 8, "typical/6")},
    roles=("supervisor", "router", "planner", "retrieval", "synthesis", "validation"),
    takes_questions=True,
    refusal=with_policies_but(anytime="the answer of synthesis stands in the state before it is validated"),
    has_router=True,
    reads_settings=True,
)
"""DocMind's five roles."""
