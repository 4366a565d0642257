"""The workload `own`: a user's graph, run unchanged under every alternative.

inputs.py        what it is asked, checked against its schema
kind.py          "my_app:graph", or a live object, as a graph with a name that worker processes find
workload.py      one graph, many runs
doorway.py       the deadline on its way in, states on their way out
calls.py         calls under way: their node, their call above, when they are over
callbacks.py     models, tools and retrievers, as LangChain tells of them
watch.py         requests, as the hooks below HTTP clients tell of them, and where they go
"""

from docmind_lab.workloads.own.callbacks import GraphCallbacks
from docmind_lab.workloads.own.calls import Place, RunCalls, RunTree
from docmind_lab.workloads.own.inputs import GraphInput, Inputs, read_inputs
from docmind_lab.workloads.own.kind import OwnGraph, load_graph, own_graph, own_kind
from docmind_lab.workloads.own.watch import Services
from docmind_lab.workloads.own.workload import OwnWorkload

__all__ = [
    "GraphCallbacks",
    "GraphInput",
    "Inputs",
    "OwnGraph",
    "OwnWorkload",
    "Place",
    "RunCalls",
    "RunTree",
    "Services",
    "load_graph",
    "own_graph",
    "own_kind",
    "read_inputs",
]
