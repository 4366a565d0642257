"""The peer agents: A2A servers that read passages for the agents that delegate to them.

behaviour.py   how long a peer works on a task, and how it may misbehave, drawn by key
exchange.py    one request to a peer, and its row in the service's log
executor.py    one task of a peer, run by the A2A SDK, and its answer
host.py        the SDK's server for all peers, as one ASGI application with the service's log

`host` and `executor` need the package a2a-sdk, and are imported when the first request for a peer comes.
"""

from docmind_lab.services.peers.behaviour import DEFAULT_HABITS, PEERS_PATH, PeerBehaviour, PeerCourse, PeerHabits

__all__ = ["DEFAULT_HABITS", "PEERS_PATH", "PeerBehaviour", "PeerCourse", "PeerHabits"]
