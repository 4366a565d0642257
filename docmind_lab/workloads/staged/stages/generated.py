"""The third rung: calls made up without a model, from what it said and from the text itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.docmind.graphs.sync_async import StepsNode
from docmind_lab.workloads.staged.ledger import StageLedger
from docmind_lab.workloads.staged.parsing import ToolCall
from docmind_lab.workloads.staged.stages.rung import rung
from docmind_lab.workloads.staged.state import Ladder, last_said, text_of
from docmind_lab.workloads.staged.text_mining import generated_calls


def generated(ladder: Ladder) -> StepsNode:
    """The node that makes them up and runs them."""

    def calls_of(state: Mapping[str, Any], ledger: StageLedger) -> Sequence[ToolCall]:
        message = last_said(state["messages"])
        said = "" if message is None else message.text
        return generated_calls(said, text_of(state), ladder.options.max_calls)

    return rung(ladder, "generated", calls_of, "forced")
