"""The workload `peers`: a parent agent that delegates each question to peer agents over the A2A protocol.

`source_recall` is the share of the question's gold topics among the passages that peers gave back in time,
`answer_score` the share of its gold facts that the conclusion states with a citation, `documents_count` the number of
those passages. A call that timed out has none: what a peer costs when it is late shows in all three.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.base.model_client import ModelClient
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind
from docmind_lab.systems.base.workloads import ClientWorkload, configured
from docmind_lab.systems.peers.caller import PeerCaller
from docmind_lab.systems.peers.client import PeerClients
from docmind_lab.systems.peers.correlation import PeerTimeouts
from docmind_lab.systems.peers.peer_events import EVENTS, PEER_TASKS
from docmind_lab.systems.peers.peers_graph import Parent
from docmind_lab.systems.peers.shelves import shelves

PEERS = ("reader_1", "reader_2", "reader_3", "reader_4")
"""The peers that a parent has, each with its part of the corpus."""


@dataclass
class PeersWorkload(ClientWorkload):
    """The parent agent and its clients, built once and run many times.

    surroundings: see `workload_by_name.py`. timeouts: of each call to a peer. concluding_share: of what is left of a
    propagated deadline, kept for the conclusion.
    """

    timeouts: PeerTimeouts = field(default_factory=PeerTimeouts)
    concluding_share: float = 0.25

    name = "peers"

    def _build(self) -> None:
        self.shelves = shelves(self.surroundings.resolve_corpus().chunks, PEERS)
        self.caller = self._new_caller()

    def _new_caller(self) -> PeerCaller:
        return PeerCaller(PeerClients(self.surroundings.addresses.peers_url, self.http), timeouts=self.timeouts)

    def _graph(self, mode: NodeMode) -> Runnable:
        model, timeout_s = self._model(mode), self.surroundings.settings.llm.request_timeout_seconds

        def model_client(role: str) -> ModelClient:
            return ModelClient(model, ModelCalls(role, request_timeout_s=timeout_s))

        parent = Parent(
            delegating=model_client("delegate"),
            concluding=model_client("conclude"),
            shelves=self.shelves,
            caller=self.caller,
            new_caller=self._new_caller,
            concluding_share=self.concluding_share,
            mode=mode,
        )
        return parent.graph(self.saver)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the recorder, with a thread of its own in the checkpointer."""
        depth = self.surroundings.settings.agents.max_workflow_depth
        return configured(self.graph, recorder, recorder.run_id, recursion_limit=depth)

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints and its pending calls."""
        super().forget(run_id)
        self.caller.correlator.drop(run_id)

    def close(self) -> None:
        """Close the clients, the async ones on the loop they were used on."""
        shared_loop().run(self.caller.clients.aclose())
        super().close()


# Late answers and failed cancels are studied here: they are logged, and printed where logging is configured.
logging.getLogger("docmind_lab.systems.peers").addHandler(logging.NullHandler())

KIND = WorkloadKind(
    adapts=True,
    name="peers",
    title="Parent of four A2A peers",
    asked="questions",
    cases=load_questions,
    build=PeersWorkload,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(20.0, 40, "heavy_tail/3"), "wall": Defaults(2.0, 8, "typical/5")},
    roles=("delegate", *PEERS, "conclude"),
    events=EVENTS,
    tables=(PEER_TASKS,),
    takes_questions=True,
    reads_settings=True,
)
"""A parent agent that delegates each question to four peers."""
