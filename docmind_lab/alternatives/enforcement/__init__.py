"""The measured alternatives in production: a user's own graph, clients and services under a deadline.

enforced_agent.py      `enforce`: a compiled graph under an alternative
call.py                one call of it: its stream modes, its state as it goes, how its end becomes a result
enforced_streams.py    its chunks, read while the run goes on in a task or thread of its own; callers that leave
enforced_graph.py      it as a LangGraph graph, for servers and for graphs around it
result.py              what a call returns
repaired_threads.py    `repair`: a thread that was cut, as a provider takes it
once.py                `once`: a tool with an effect, whose repeated call returns the result of the first
scope.py               `deadline`: any block of code under a deadline, without a graph
check.py               what no deadline reaches in a graph, before it runs
hooks.py               `install`, `uninstall`, `exclude`: hooks on existing HTTP clients
transport.py           `transport`: one client held without hooks
wrap_up_middleware.py  `WrapUpMiddleware`: one agent wrapped up without hooks
call_telemetry.py      a span and three metrics of each call; imports OpenTelemetry, and is imported by nothing here
wire/                  the deadline between processes: ASGI, A2A, MCP

The same classes that the lab measures enforce here. Nothing here loads pandas, matplotlib, pyarrow or Jupyter.
"""

from docmind_lab.alternatives.enforcement.enforced_agent import EnforcedAgent, enforce
from docmind_lab.alternatives.enforcement.enforced_streams import disconnected
from docmind_lab.alternatives.enforcement.hooks import exclude, install, uninstall
from docmind_lab.alternatives.enforcement.once import once
from docmind_lab.alternatives.enforcement.repaired_threads import Repair, arepair, repair
from docmind_lab.alternatives.enforcement.result import CallCut, Partial, Result
from docmind_lab.alternatives.enforcement.scope import deadline, remaining_s
from docmind_lab.alternatives.enforcement.transport import HeldTransport, transport

__all__ = [
    "CallCut",
    "EnforcedAgent",
    "HeldTransport",
    "Partial",
    "Repair",
    "Result",
    "arepair",
    "deadline",
    "disconnected",
    "enforce",
    "exclude",
    "install",
    "once",
    "remaining_s",
    "repair",
    "transport",
    "uninstall",
]
