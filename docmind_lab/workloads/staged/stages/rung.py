"""A rung that asks no model: it has calls to run, and hands over to the next one if no write of them is confirmed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from docmind_lab.docmind.graphs.sync_async import Steps, StepsNode
from docmind_lab.workloads.staged.graph_store import Origin
from docmind_lab.workloads.staged.ledger import Desk, StageLedger
from docmind_lab.workloads.staged.parsing import ToolCall
from docmind_lab.workloads.staged.state import Ladder

CallsOf = Callable[[Mapping[str, Any], StageLedger], Sequence[ToolCall]]
"""State and ledger → calls to run; it may count what it leaves out in the ledger."""


def rung(ladder: Ladder, stage: Origin, calls_of: CallsOf, next_stage: str) -> StepsNode:
    """The node of a rung whose writes have its own name as their origin."""

    def work(desk: Desk, state: Mapping[str, Any], ledger: StageLedger) -> int:
        calls = calls_of(state, ledger)
        desk.run(stage, stage, calls, ledger)
        return len(calls)

    return rung_of_work(ladder, stage, work, next_stage)


def rung_of_work(
    ladder: Ladder, stage: str, work: Callable[[Desk, Mapping[str, Any], StageLedger], int], next_stage: str
) -> StepsNode:
    """The node of a rung. work: writes, and says how many writes it had to try."""

    def climb(state: Mapping[str, Any], config: RunnableConfig) -> Steps[Command[Any]]:
        yield from ()  # nothing to wait for: the store is local
        begun_at = ladder.telling.started(stage)
        ledger = StageLedger.of(state)
        before = ledger.counts()
        asked = work(ladder.desk(state, config), state, ledger)
        gained = {name: value - before[name] for name, value in ledger.counts().items()}
        outcome = "confirmed" if gained["confirmed"] else "unconfirmed" if asked else "nothing"
        ladder.telling.ended(stage, begun_at, outcome, gained)
        goto = "finalize" if gained["confirmed"] else next_stage
        if not gained["confirmed"] and next_stage != "finalize":
            ladder.telling.fell_back(stage, next_stage, outcome)
        return Command(goto=goto, update=ledger.update())

    return StepsNode(stage, climb)
