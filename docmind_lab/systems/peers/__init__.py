"""The workload `peers`: a parent that delegates to peer agents over A2A, and how calls that take too long end.

correlation.py   a pending call, the limits of its time, and its four outcomes
stores.py        stores of pending calls; one atomic claim decides each
correlator.py    decides each call by the first of an answer, a timeout, a cancel, a failure
client.py        A2A clients through the network seam
caller.py        call peers side by side: timers, signs of life, cancels
events.py        events of a call, and the table `peer_tasks`
shelves.py       the corpus divided among the peers
graph.py         the parent agent
workload.py      the parent as a system under a deadline

The peers themselves are in docmind_lab/services/peers. The package needs a2a-sdk (extra "peers").
"""

import logging

from docmind_lab.systems.base.questions import load_questions
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind
from docmind_lab.systems.peers.events import EVENTS, PEER_TASKS
from docmind_lab.systems.peers.workload import PEERS, PeersWorkload

# Late answers and failed cancels are studied here: they are logged, and printed where logging is configured.
logging.getLogger(__name__).addHandler(logging.NullHandler())

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

__all__ = ["KIND", "PeersWorkload"]
