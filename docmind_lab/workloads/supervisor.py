"""The workload `supervisor`: DocMind's five roles over the language reference, reached over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from docmind_lab.alternatives.base import Alternative, Outcome, Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.graphs import (
    SUPERVISOR_PROMPT,
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    build_role_agents,
    create_forward_message_tool,
)
from docmind_lab.graphs.observer import ObservedSaver, RunCallbacks
from docmind_lab.graphs.roles import SUPERVISOR_ROLE, role_middleware
from docmind_lab.network import HttpClients
from docmind_lab.recorder import Recorder
from docmind_lab.retrieval import Question, RetrievedDocument, SearchIndex, answer_score, load_language_reference
from docmind_lab.retrieval import source_recall as share_of_gold_topics
from docmind_lab.retrieval.tool import RetrievalResources
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.settings import Settings

# What the openai client does when nobody says otherwise; kept for every alternative that leaves retries to it.
SDK_RETRIES = 2


@dataclass
class SupervisorWorkload:
    """The system, built once and run many times; everything slow (imports, clients, index, graph) is done here.

    settings: endpoints are checked against its allowlist at every request. client_retries: of the openai client for
    alternatives that leave retries to it; None for its default.
    """

    addresses: ServiceAddresses
    settings: Settings
    client_retries: int | None = None
    max_connections: int = 100

    name = "supervisor"

    def __post_init__(self) -> None:
        self.http = HttpClients(admit=self.settings.admit, max_connections=self.max_connections)
        self.saver = ObservedSaver()
        # qdrant-client takes whole seconds only; the seam holds the deadline to the millisecond.
        backstop_s = math.ceil(self.settings.database.qdrant_timeout)
        self._qdrant = self.http.qdrant(self.addresses.qdrant_url, backstop_s)
        self._qdrant_async = self.http.qdrant_async(self.addresses.qdrant_url, backstop_s)
        self.index = SearchIndex.build(self._qdrant, load_language_reference())
        self.graph = self._build()

    def _build(self) -> Runnable:
        llm = self.settings.llm
        model = ChatOpenAI(
            model=llm.model,
            base_url=self.addresses.openai_base_url,
            api_key=llm.api_key,
            max_retries=self.client_retries,
            http_client=self.http.openai,
            http_async_client=self.http.openai_async,
        )
        resources = RetrievalResources(self.index, self._qdrant, self._qdrant_async)
        graph = build_multi_agent_supervisor_graph(
            build_role_agents(model, resources=resources, request_timeout_s=llm.request_timeout_seconds),
            model=model,
            prompt=SUPERVISOR_PROMPT,
            state_schema=MultiAgentGraphState,
            extra_tools=[create_forward_message_tool("supervisor")],
            middleware=role_middleware(SUPERVISOR_ROLE, llm.request_timeout_seconds),
            params=SupervisorBuildParams(max_concurrent_agents=self._side_by_side),
        )
        return graph.compile(checkpointer=self.saver)

    @property
    def _side_by_side(self) -> int:
        agents = self.settings.agents
        return agents.max_concurrent_agents if agents.enable_parallel_tool_execution else 1

    def runnable(self, recorder: Recorder) -> Runnable:
        """The graph, observed by the run's recorder and with a thread of its own in the checkpointer."""
        return self.graph.with_config(
            {
                "configurable": {"thread_id": recorder.run_id},
                "callbacks": [RunCallbacks(recorder)],
                "recursion_limit": self.settings.agents.max_workflow_depth,
                "max_concurrency": self._side_by_side,
            }
        )

    def inputs(self, question: Question) -> dict[str, Any]:
        """The graph's input for a question."""
        return {"messages": [HumanMessage(question.text, id="question")]}

    def retries(self, alternative: Alternative) -> str:
        """The level of the `retries` factor for an alternative."""
        if alternative.client_retries:
            return f"sdk:{SDK_RETRIES if self.client_retries is None else self.client_retries}"
        policy = getattr(alternative, "policy", None)
        return f"budgeted:{policy.retries}" if policy is not None else "none"

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Source recall and answer score of what the caller got."""
        documents = [_document(payload) for payload in outcome.documents]
        recall = share_of_gold_topics(question, [document.topic for document in documents])
        return recall, answer_score(question, outcome.answer, documents)

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints."""
        self.saver.delete_thread(run_id)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self._qdrant.close()
        self.http.close()
        shared_loop().run(self._close_async())

    async def _close_async(self) -> None:
        await self._qdrant_async.close()
        await self.http.aclose()


def _document(payload: Mapping[str, Any]) -> RetrievedDocument:
    known: Sequence[str] = ("id", "content", "metadata", "score")
    return RetrievedDocument(**{name: payload[name] for name in known if name in payload})
