"""One chunk into the graph: the ladder as a plain function, sync and async.

graph = build_staged_graph(ChatOpenAI(...))
result = process_chunk("A checkpoint is …", graph, GraphStore("graph.db"), source="handbook", chunk="12")
result.outcome, result.confirmed            # ("agent", 7)
await aprocess_chunk(...)                   # the same on an event loop
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.workloads.staged.graph import Compiled
from docmind_lab.workloads.staged.graph_store import GraphWriter
from docmind_lab.workloads.staged.ledger import StageLedger
from docmind_lab.workloads.staged.state import STORE_KEY


@dataclass(frozen=True)
class ChunkResult:
    """What came of a chunk.

    outcome: the rung that wrote first (agent, suggested, generated, forced), or skipped_empty. confirmed, unconfirmed:
    writes. skipped: calls that asked for nothing that can be done. dropped: calls beyond what is run at once.
    repaired: calls that were mended. warnings: what did not work in the end, and did no harm to the rest.
    writes: key → kind, origin and names of each confirmed write.
    """

    outcome: str
    confirmed: int
    unconfirmed: int
    skipped: int
    dropped: int
    repaired: int
    warnings: tuple[str, ...]
    writes: Mapping[str, Mapping[str, Any]]

    @property
    def succeeded(self) -> bool:
        """Whether anything is in the graph that the store has confirmed."""
        return self.confirmed > 0


def process_chunk(
    text: str, graph: Compiled, store: GraphWriter, *, source: str, chunk: str, deadline: Deadline | None = None
) -> ChunkResult:
    """What came of the chunk, after all of its ladder. It blocks, and may be called with an event loop running.

    deadline: the agent's timeout is at most what is left of it, less the ladder's reserve.
    Raises: LadderFailed when nothing could be written; its record is the dead letter.
    """
    return _result(graph.invoke(_inputs(text, source, chunk, deadline), _config(store)))


async def aprocess_chunk(
    text: str, graph: Compiled, store: GraphWriter, *, source: str, chunk: str, deadline: Deadline | None = None
) -> ChunkResult:
    """`process_chunk`, async; cancelled, it leaves what was written until then."""
    return _result(await graph.ainvoke(_inputs(text, source, chunk, deadline), _config(store)))


def _inputs(text: str, source: str, chunk: str, deadline: Deadline | None) -> dict[str, Any]:
    carried = {} if deadline is None else {DEADLINE_KEY: deadline.at_s}
    return {"messages": [HumanMessage(text, id="chunk")], "source": source, "chunk": chunk, **carried}


def _config(store: GraphWriter) -> RunnableConfig:
    return {"configurable": {STORE_KEY: store}, "recursion_limit": 100}


def _result(state: Mapping[str, Any]) -> ChunkResult:
    ledger = StageLedger.of(state)
    return ChunkResult(
        outcome=state["outcome"],
        confirmed=len(ledger.confirmed),
        unconfirmed=ledger.unconfirmed,
        skipped=ledger.skipped,
        dropped=ledger.dropped,
        repaired=ledger.repaired,
        warnings=tuple(ledger.warnings),
        writes=ledger.confirmed,
    )
