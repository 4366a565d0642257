"""The workload `supervisor`: DocMind's five roles over a corpus, reached over HTTP."""

from __future__ import annotations

from docmind_lab.alternatives.base import Runnable
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question, load_questions
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind, with_policies_but
from docmind_lab.systems.base.workloads import ClientWorkload
from docmind_lab.systems.docmind.docmind_system import DocmindSystem


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
