"""A staged orchestrator that turns text into a graph: an agent with tools, and a ladder of fallbacks below it.

    primary → suggested → generated → forced → finalize

parsing.py             parse tool calls from a model's reply, whole or damaged
calls.py               the tools, the write that each call makes, the order of calls
graph_store.py         the store, and what confirms a write
ledger.py              the record of a run's writes; the desk that runs calls
timeouts.py            how long the agent may take, fixed or adaptive
state.py, graph.py     the ladder as a LangGraph graph; one chunk through it
primary.py, rungs.py   its rungs: the agent, and those below it, which ask no model
events.py              events, and the table `stages` that is made of them
chunks.py, workload.py the workload `staged`: its inputs, its kind
"""

from docmind_lab.systems.staged.calls import ordered
from docmind_lab.systems.staged.chunks import StagedChunk, staged_chunks
from docmind_lab.systems.staged.graph import ChunkResult, aprocess_chunk, build_staged_graph, process_chunk
from docmind_lab.systems.staged.graph_store import GraphStore, GraphWriter, Written, is_confirmed
from docmind_lab.systems.staged.parsing import Parsed, ToolCall, parse_message, parse_text, parse_tool_calls
from docmind_lab.systems.staged.state import LadderFailed, StagedOptions
from docmind_lab.systems.staged.timeouts import AdaptiveTimeout, FixedTimeout, PrimaryTimeout
from docmind_lab.systems.staged.workload import KIND, StagedWorkload

__all__ = [
    "KIND",
    "AdaptiveTimeout",
    "ChunkResult",
    "FixedTimeout",
    "GraphStore",
    "GraphWriter",
    "LadderFailed",
    "Parsed",
    "PrimaryTimeout",
    "StagedChunk",
    "StagedOptions",
    "StagedWorkload",
    "ToolCall",
    "Written",
    "aprocess_chunk",
    "build_staged_graph",
    "is_confirmed",
    "ordered",
    "parse_message",
    "parse_text",
    "parse_tool_calls",
    "process_chunk",
    "staged_chunks",
]
