"""The record of a run's writes: which are confirmed, which relations are not yet, and which calls were left out.

It travels in the graph's state as plain data, so that it survives a cut of the run, and no later rung repeats a write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from docmind_lab.network.recorder import note_event
from docmind_lab.systems.staged.graph_store import GraphStore, Origin, Written, is_confirmed, key_of
from docmind_lab.systems.staged.parsing import ToolCall
from docmind_lab.systems.staged.stage_calls import Relation, Write, ordered, write_of
from docmind_lab.systems.staged.staged_events import note_write


@dataclass
class StageLedger:
    """What a run has written. confirmed: details by the write's key. pending: relations not confirmed yet.

    skipped: calls that ask for nothing that can be done. dropped: calls beyond what is run at once.
    first_origin: of the first confirmed write. warnings: names of what did not work in the end.
    """

    confirmed: dict[str, dict[str, Any]] = field(default_factory=dict)
    pending: list[dict[str, str]] = field(default_factory=list)
    unconfirmed: int = 0
    skipped: int = 0
    dropped: int = 0
    first_origin: str = ""
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> StageLedger:
        """Copy the ledger out of a graph's state, to change it and put it back."""
        fields: Mapping[str, Any] = state.get("ledger") or {}
        copy = cls(**fields)
        copy.confirmed, copy.pending, copy.warnings = dict(copy.confirmed), list(copy.pending), list(copy.warnings)
        return copy

    def update(self) -> dict[str, Any]:
        """Return the update of the state: the ledger, and its confirmed writes as documents."""
        documents = [
            {"id": key, "content": " – ".join(what["names"]), "metadata": dict(what), "score": 1.0}
            for key, what in self.confirmed.items()
        ]
        return {"ledger": asdict(self), "documents": documents}

    def written_names(self) -> list[str]:
        """Return each name that a confirmed write is about, once, in order."""
        names: dict[str, str] = {}
        for what in self.confirmed.values():
            for name in what["names"]:
                names.setdefault(key_of(name), name)
        return list(names.values())

    def counts(self) -> dict[str, int]:
        """Return the counts so far, by name."""
        return {
            "confirmed": len(self.confirmed),
            "unconfirmed": self.unconfirmed,
            "skipped": self.skipped,
            "dropped": self.dropped,
        }

    def gained_since(self, before: Mapping[str, int]) -> dict[str, int]:
        """Return by how much each count has grown."""
        return {name: value - before[name] for name, value in self.counts().items()}


@dataclass(frozen=True)
class Desk:
    """Runs the calls of one stage against a store. most: calls that are run at once; the rest is dropped."""

    store: GraphStore
    ledger: StageLedger
    source: str
    chunk: str
    most: int = 10

    def run(self, stage: str, origin: Origin, calls: Sequence[ToolCall]) -> dict[str, dict[str, Any]]:
        """Run the calls in order and note them in the ledger; return the result of each native call by its id."""
        in_order = ordered(calls)
        results: dict[str, dict[str, Any]] = {}
        for call in in_order[: self.most]:
            results[call.id] = self._run_one(stage, origin, call)
        dropped = in_order[self.most :]
        if dropped:
            self.ledger.dropped += len(dropped)
            note_event("calls_dropped", stage, stage=stage, dropped=len(dropped))
        results |= {call.id: {"status": "error", "error_type": "too_many_calls"} for call in dropped}
        return results

    def _run_one(self, stage: str, origin: Origin, call: ToolCall) -> dict[str, Any]:
        write, ledger = write_of(call), self.ledger
        if write is None:
            ledger.skipped += 1
            return {"status": "error", "error_type": "invalid_call"}
        if write.key in ledger.confirmed:
            return {"status": "ok", "id": write.key, "created": False}
        if self.write(stage, origin, write, repaired=call.repaired):
            return {"status": "ok", "id": write.key, "created": True}
        ledger.unconfirmed += 1
        if isinstance(write, Relation):
            ledger.pending.append({"origin": origin, **write.model_dump()})
        return {"status": "error", "error_type": "not_written"}

    def write(self, stage: str, origin: Origin, write: Write, *, repaired: bool = False) -> bool:
        """Perform one write, and return whether it is confirmed."""
        result = attempt(lambda: write.apply(self.store, Written(origin, self.source, self.chunk)))
        confirmed = is_confirmed(result)
        if confirmed:
            names = list(dict.fromkeys([*write.names, *(_names_in(result) if write.names else ())]))
            what = {"kind": write.kind, "origin": origin, "names": names, "counts_as": list(write.counts_as)}
            self.ledger.confirmed[write.key] = what
            self.ledger.first_origin = self.ledger.first_origin or origin
        created = confirmed and isinstance(result, Mapping) and bool(result.get("created"))
        note_write(stage, origin, write, confirmed=confirmed, created=created, repaired=repaired)
        return confirmed


def attempt(write: Any) -> object:
    """Perform a write and return its result; an error that it raises becomes a result that confirms nothing."""
    try:
        return write()
    except Exception as error:  # noqa: BLE001 - a store is another's code; its failure is not that of its siblings
        return {"status": "error", "error_type": type(error).__name__}


def _names_in(result: object) -> list[str]:
    names = result.get("names") if isinstance(result, Mapping) else None
    return [name for name in names if isinstance(name, str) and name.strip()] if isinstance(names, list) else []
