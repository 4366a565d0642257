"""The seam: the one layer between every HTTP client and its sockets, where requests are timed and bounded.

attempts.py           a logical call and its attempts on the wire; who observes them
streams.py            network backends that observe bytes and hold every operation to the deadline
call_limits.py        one call under its limits: what counts as a token, and what bounds the call now
wrapping_up.py        what a model is told when its run is wrapped up, and until when tools may ask
exchange.py           one request under way: what it is allowed, what is noted, how it ends
taps.py               functions called before each request is sent, and with its traffic at the end
recorder.py           what happened in one run
openai_parameters.py  plain parameters of chat completions passed on as they are, in virtual time
snapshots.py          what a recorder had at an earlier instant
transports.py         httpx and httpx2 transports over pools with that backend
seam_clients.py       HTTP clients for the openai and qdrant libraries
clients/              client libraries of a user's graph: an adapter for each, which observes and holds
replacements.py       attributes that are replaced for a while
deadline_headers.py   the header that carries the time left, and the hosts that get it
live_endpoints.py     whether live endpoints answer, and with which models
virtual_wire.py       one connection inside a process, in virtual time
virtual_network.py    a network without sockets, below httpcore and httpcore2, for one run of a virtual clock

httpcore (under httpx, under qdrant-client) and httpcore2 (under httpx2, under openai) take the same seam.
"""

from docmind_lab.network.attempts import Attempt, AttemptObserver, LogicalCall, call_scope, current_call
from docmind_lab.network.seam_clients import HttpClients
from docmind_lab.network.transports import (
    AsyncHttpx2Transport,
    AsyncHttpxTransport,
    Httpx2Transport,
    HttpxTransport,
)

__all__ = [
    "AsyncHttpx2Transport",
    "AsyncHttpxTransport",
    "Attempt",
    "AttemptObserver",
    "HttpClients",
    "Httpx2Transport",
    "HttpxTransport",
    "LogicalCall",
    "call_scope",
    "current_call",
]
