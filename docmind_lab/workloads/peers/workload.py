"""The workload `peers`: a parent agent that delegates each question to peer agents over the A2A protocol.

`source_recall` is the share of the question's gold topics among the passages that peers gave back in time,
`answer_score` the share of its gold facts that the conclusion states with a citation, `documents_count` the number of
those passages. A call that timed out has none: what a peer costs when it is late shows in all three.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import HumanMessage

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.docmind.graphs.model_calls import ModelCalls
from docmind_lab.docmind.graphs.model_client import ModelClient
from docmind_lab.docmind.graphs.node_modes import NodeMode, chat_model
from docmind_lab.docmind.graphs.observer import ObservedSaver, RunCallbacks
from docmind_lab.docmind.retrieval import Question
from docmind_lab.docmind.system import Runnable
from docmind_lab.network import HttpClients
from docmind_lab.network.recorder import Recorder
from docmind_lab.workloads.base import GraphWorkload
from docmind_lab.workloads.kinds import Surroundings
from docmind_lab.workloads.peers.caller import PeerCaller
from docmind_lab.workloads.peers.client import PeerClients
from docmind_lab.workloads.peers.correlation import PeerTimeouts
from docmind_lab.workloads.peers.correlator import Correlator
from docmind_lab.workloads.peers.graph import Parent
from docmind_lab.workloads.peers.shelves import shelves
from docmind_lab.workloads.peers.stores import CorrelationStore

PEERS = ("reader_1", "reader_2", "reader_3", "reader_4")
"""The peers that a parent has, each with its part of the corpus."""


@dataclass
class PeersWorkload(GraphWorkload):
    """The parent agent and its clients, built once and run many times.

    surroundings: see `kinds.py`. timeouts: of each call to a peer. store: of pending calls; in this process when left
    out. concluding_share: of what is left of a propagated deadline, kept for the conclusion.
    """

    surroundings: Surroundings
    timeouts: PeerTimeouts = field(default_factory=PeerTimeouts)
    store: CorrelationStore | None = None
    concluding_share: float = 0.25

    name = "peers"

    def __post_init__(self) -> None:
        settings = self.surroundings.settings
        self.http = HttpClients(admit=settings.admit, max_connections=self.surroundings.max_connections)
        self.shelves = shelves(self.surroundings.resolve_corpus().chunks, PEERS)
        self.saver = ObservedSaver()
        self.correlator = Correlator(self.store)
        self.clients = PeerClients(self.surroundings.addresses.peers_url, self.http)
        self.caller = PeerCaller(self.clients, self.correlator, self.timeouts)
        self.node_mode = self.surroundings.node_mode
        self.graph = self._graph(self.node_mode)

    def _graph(self, mode: NodeMode) -> Runnable:
        surroundings = self.surroundings
        llm, base_url = surroundings.settings.llm, surroundings.addresses.openai_base_url
        model = chat_model(mode, llm, base_url, self.http, max_retries=surroundings.client_retries)

        def model_client(role: str) -> ModelClient:
            return ModelClient(model, ModelCalls(role, request_timeout_s=llm.request_timeout_seconds))

        parent = Parent(
            delegating=model_client("delegate"),
            concluding=model_client("conclude"),
            shelves=self.shelves,
            url=self.surroundings.addresses.peers_url,
            http=self.http,
            caller=self.caller,
            timeouts=self.timeouts,
            concluding_share=self.concluding_share,
            mode=mode,
        )
        return parent.graph(self.saver)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the recorder, with a thread of its own in the checkpointer."""
        agents = self.surroundings.settings.agents
        return self.graph.with_config(
            {
                "configurable": {"thread_id": recorder.run_id},
                "callbacks": [RunCallbacks(recorder)],
                "recursion_limit": agents.max_workflow_depth,
            }
        )

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a question."""
        return {"messages": [HumanMessage(question.text, id="question")]}

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints and its pending calls."""
        self.saver.delete_thread(run_id)
        self.correlator.drop(run_id)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        self.http.close()
        shared_loop().run(self._close_async())

    async def _close_async(self) -> None:
        await self.clients.aclose()
        await self.http.aclose()
