"""The workload `own`: a user's graph, run unchanged under every alternative; and agents and programs.

inputs.py        the graph's inputs, checked against its schema
references.py    a module, a file or an entry of langgraph.json as a compiled graph
run_settings.py  what a run is given besides its input: context, configuration, store, answers to interrupts
own_kind.py      a reference, or a live object, as a graph with a name that worker processes find
own_workload.py  OwnWorkload: the graph under any alternative, and its checkpointer
doorway.py       the adapter: passes the deadline in, converts states on their way out
graph_calls.py   calls under way, from LangChain's callbacks: their node, their parent call, when they are over
making.py        what answers a user's code while it makes its graph
tokenizer.py     vocabularies in place of files that tiktoken downloads
own_requests.py  requests, from hooks below HTTP clients, and where they go
unsimulated.py   what has no virtual time, refused by name: other connections, drivers, programs
agents.py        agents that are no LangGraph graph
programs         programs in any language
"""

from docmind_lab.systems.own.inputs import GraphInput, Inputs, read_inputs
from docmind_lab.systems.own.own_kind import OwnGraph, graph_named, own_graph, own_kind
from docmind_lab.systems.own.own_requests import Services
from docmind_lab.systems.own.own_workload import OwnWorkload
from docmind_lab.systems.own.references import load_graph
from docmind_lab.systems.own.run_settings import StoreMaker

__all__ = [
    "GraphInput",
    "Inputs",
    "OwnGraph",
    "OwnWorkload",
    "Services",
    "StoreMaker",
    "graph_named",
    "load_graph",
    "own_graph",
    "own_kind",
    "read_inputs",
]
