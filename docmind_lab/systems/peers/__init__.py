"""The workload `peers`: a parent that delegates to peer agents over A2A, and how calls that take too long end.

correlation.py     a pending call, the limits of its time, and its four outcomes
correlator.py      decides each call by the first of an answer, a timeout, a cancel, a failure
client.py          A2A clients through the network seam
caller.py          call peers side by side: timers, signs of life, cancels
peer_events.py     events of a call, and the table `peer_tasks`
shelves.py         the corpus divided among the peers
peers_workload.py  the parent agent, as a system under a deadline
peers_script.py    what the parent's model says; the path of the peers
peers_host.py      the SDK's server for all peers, as one ASGI application with the service's log
executor.py        one task of a peer, run by the A2A SDK, and its answer

The package needs a2a-sdk (extra "peers").
"""

import docmind_lab.systems.peers.peers_script  # noqa: F401 - it adds what the parent's model says, and the server of the peers
