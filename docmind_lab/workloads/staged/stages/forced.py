"""The last rung: evidence that the chunk exists, and one entity, so that no chunk leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docmind_lab.docmind.graphs.sync_async import StepsNode
from docmind_lab.workloads.staged.calls import ChunkEvidence, Entity
from docmind_lab.workloads.staged.ledger import Desk, StageLedger
from docmind_lab.workloads.staged.stages.rung import rung_of_work
from docmind_lab.workloads.staged.state import Ladder, text_of
from docmind_lab.workloads.staged.text_mining import names_in


def evidence_name(source: str, chunk: str) -> str:
    """What the evidence of a chunk is called."""
    return f"Evidence {source}-{chunk}"


def forced(ladder: Ladder) -> StepsNode:
    """The node that writes it: evidence, and the first name of the text, or else the document itself."""

    def work(desk: Desk, state: Mapping[str, Any], ledger: StageLedger) -> int:
        names = names_in(text_of(state), most=1)
        entity = Entity(name=names[0], type="Term") if names else _document(desk.source)
        writes = (ChunkEvidence(name=evidence_name(desk.source, desk.chunk)), entity)
        for write in writes:
            if not desk.write("forced", "forced", write, ledger):
                ledger.unconfirmed += 1
        return len(writes)

    return rung_of_work(ladder, "forced", work, "finalize")


def _document(source: str) -> Entity:
    return Entity.model_construct(name=f"Document {source}", type="Document")
