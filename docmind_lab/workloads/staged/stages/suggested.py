"""The second rung: calls that the agent wrote into its last message, because it did not call its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docmind_lab.docmind.graphs.sync_async import StepsNode
from docmind_lab.workloads.staged.ledger import StageLedger
from docmind_lab.workloads.staged.parsing import ToolCall, parse_text
from docmind_lab.workloads.staged.stages.rung import rung
from docmind_lab.workloads.staged.state import Ladder, last_said


def suggested(ladder: Ladder) -> StepsNode:
    """The node that runs them. Native calls of the message have been run by the agent itself, and are left alone."""

    def calls_of(state: Mapping[str, Any], ledger: StageLedger) -> Sequence[ToolCall]:
        message = last_said(state["messages"])
        if message is None:
            return ()
        parsed = parse_text(message.text, str(message.response_metadata.get("finish_reason", "stop")))
        ledger.skipped += parsed.invalid
        return parsed.calls

    return rung(ladder, "suggested", calls_of, "generated")
