"""The workload `supervisor`: DocMind's five roles over a corpus, reached over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage

from docmind_lab.alternatives.base import Runnable
from docmind_lab.docmind.graphs.node_modes import NodeMode
from docmind_lab.docmind.graphs.observer import ObservedSaver
from docmind_lab.docmind.retrieval import Question, load_questions
from docmind_lab.docmind.system import DocmindSystem
from docmind_lab.network.recorder import Recorder
from docmind_lab.workloads.base import CorpusWorkload
from docmind_lab.workloads.kinds import Defaults, WorkloadKind, with_policies_but


@dataclass
class SupervisorWorkload(CorpusWorkload):
    """The DocMind system as a workload; its parameters are those of every `CorpusWorkload`.

    client_retries: of the openai client, for alternatives that leave retries to it; None for its default.
    """

    name = "supervisor"

    def _build(self) -> None:
        self.system = DocmindSystem(
            self.addresses,
            self.settings,
            self.corpus,
            client_retries=self.client_retries,
            max_connections=self.max_connections,
        )
        self.saver = ObservedSaver()

    def _graph(self, mode: NodeMode) -> Runnable:
        return self.system.graph(self.saver, mode=mode)

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the recorder, with a thread of its own in the checkpointer."""
        return self.system.for_run(self.graph, recorder, recorder.run_id)

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a question."""
        return {"messages": [HumanMessage(question.text, id="question")]}

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints."""
        self.saver.delete_thread(run_id)

    def close(self) -> None:
        """Close the clients."""
        self.system.close()


KIND = WorkloadKind(
    name="supervisor",
    title="DocMind supervisor",
    asked="questions",
    cases=load_questions,
    build=SupervisorWorkload.on,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(20.0, 40, "heavy_tail/3"), "wall": Defaults(2.0, 8, "typical/6")},
    roles=("supervisor", "router", "planner", "retrieval", "synthesis", "validation"),
    takes_questions=True,
    refusal=with_policies_but(anytime="the answer of synthesis stands in the state before it is validated"),
    has_router=True,
    reads_settings=True,
)
"""DocMind's five roles."""
