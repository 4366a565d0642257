"""What is done after any rung: evidence, linked to what the chunk is about; relations once more; and the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from docmind_lab.docmind.graphs.sync_async import Steps, StepsNode
from docmind_lab.workloads.staged.calls import ChunkEvidence, Relation
from docmind_lab.workloads.staged.graph_store import Origin, Written, is_confirmed, key_of
from docmind_lab.workloads.staged.ledger import Desk, StageLedger, tried
from docmind_lab.workloads.staged.stages.forced import evidence_name
from docmind_lab.workloads.staged.state import Ladder, LadderFailed, is_blank, text_of

STAGE = "finalize"


def finalize(ladder: Ladder) -> StepsNode:
    """The node. Raises: LadderFailed when not one write is confirmed, though there was something to write."""

    def end(state: Mapping[str, Any], config: RunnableConfig) -> Steps[dict[str, Any]]:
        yield from ()  # nothing to wait for: the store is local
        begun_at = ladder.telling.started(STAGE)
        ledger, desk = StageLedger.of(state), ladder.desk(state, config)
        before = ledger.counts()
        if ledger.confirmed:
            _retry_relations(desk, ledger)
            _link_evidence(desk, ledger)
        outcome = ledger.first_origin or ("skipped_empty" if is_blank(text_of(state)) else "failed")
        gained = {name: value - before[name] for name, value in ledger.counts().items()}
        ladder.telling.ended(STAGE, begun_at, outcome, gained)
        ladder.telling.finished(outcome)
        if outcome == "failed":
            raise _put_aside(desk, ledger)
        said = AIMessage(_in_words(outcome, ledger), id="outcome", name=STAGE)
        return {**ledger.update(), "outcome": outcome, "messages": [said]}

    return StepsNode(STAGE, end)


def _retry_relations(desk: Desk, ledger: StageLedger) -> None:
    """Write each relation that is not confirmed once more: its ends may have come after it."""
    pending = {Relation(**relation).key: relation for relation in reversed(ledger.pending)}
    for key, relation in reversed(pending.items()):
        if key in ledger.confirmed:
            continue
        origin: Any = relation["origin"]
        confirmed = desk.write(STAGE, origin, Relation(**relation), ledger)
        desk.telling.retried(origin, confirmed)
        if not confirmed:
            ledger.warnings.append("relation_not_written")
    ledger.pending = []


def _link_evidence(desk: Desk, ledger: StageLedger) -> None:
    """One node of evidence for the chunk, linked once to each name that was written."""
    name, origin = evidence_name(desk.source, desk.chunk), _origin(ledger)
    evidence = ChunkEvidence(name=name)
    if evidence.key not in ledger.confirmed and not desk.write(STAGE, origin, evidence, ledger):
        ledger.warnings.append("evidence_not_written")
        return
    written = Written(origin, desk.source, desk.chunk)
    for touched in ledger.touched():
        if key_of(touched) == key_of(name):
            continue
        if not is_confirmed(tried(lambda linked=touched: desk.store.link_evidence(name, linked, written))):
            ledger.warnings.append("evidence_not_linked")


def _origin(ledger: StageLedger) -> Origin:
    """Of whoever wrote first."""
    origin: Any = ledger.first_origin
    return origin  # type: ignore[no-any-return]


def _put_aside(desk: Desk, ledger: StageLedger) -> LadderFailed:
    """The error of a chunk of which nothing could be written, after its dead letter was kept, if that could be."""
    record = {"source": desk.source, "chunk": desk.chunk, "outcome": "failed", **ledger.counts()}
    kept = is_confirmed(tried(lambda: desk.store.add_dead_letter(desk.source, desk.chunk, record)))
    record["kept"] = kept
    desk.telling.event("dead_letter", STAGE, kept=kept, error_type="LadderFailed")
    where = "its dead letter is in the store" if kept else "the store did not take its dead letter either"
    message = f"nothing could be written of chunk {desk.chunk} of {desk.source}; {where}; check the store"
    return LadderFailed(message, record)


def _in_words(outcome: str, ledger: StageLedger) -> str:
    if outcome == "skipped_empty":
        return "skipped_empty: there is nothing in the chunk to write."
    left_out = f"{ledger.unconfirmed} not confirmed, {ledger.skipped} skipped, {ledger.dropped} dropped"
    return f"{outcome}: {len(ledger.confirmed)} writes confirmed, {left_out}."
