"""What the run's recorder is told of one call to a peer: names and numbers, in events and calls.

`EVENTS` says what each event means; the table `peer_tasks` is made of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from docmind_lab.network import LogicalCall
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.workloads.peers.correlation import PEER_OUTCOMES, PeerResult
from docmind_lab.workloads.peers.correlator import TooLate

EVENTS: Mapping[str, str] = MappingProxyType(
    {
        "peer_sent": "A peer was asked. detail: call (its call_id), timeout_s.",
        "peer_task_known": "The peer's server named its task. detail: call.",
        "peer_extended": "A sign of life put a timeout off. detail: call, extensions, due_s (since it was sent).",
        "peer_decided": "A call to a peer was decided. detail: call, outcome, limit (that fired), after_s.",
        "peer_too_late": "An answer found its call decided. detail: call, kind (late, duplicate), late_by_s.",
        "peer_cancel_sent": "A peer was asked to stop. detail: call, cancel (call_id of the request).",
        "peer_cancel_ended": "The answer to that, or none in time. detail: call, outcome, latency_s.",
        "peer_retriggered": "All calls of a step were decided and the parent went on. detail: one count per outcome.",
    }
)
"""Events that only this workload records."""


class Noting:
    """The notes of one call. Without a recorder, nothing is noted."""

    def __init__(self, peer: str, position: str, recorder: Recorder | None) -> None:
        self._peer, self._position, self._recorder = peer, position, recorder
        # What the recorder will name it: a call may be decided before it is sent.
        self._call_id = f"peer/{peer}/{position}.1"

    @contextlib.contextmanager
    def sent(self, timeout_s: float) -> Iterator[None]:
        """The block that sends the call and hears its stream."""
        if self._recorder is None:
            yield
            return
        with self._call() as call:
            self._call_id = call.call_id
            self._event("peer_sent", timeout_s=timeout_s)
            yield

    def task_known(self) -> None:
        """The server's id of the task is there."""
        self._event("peer_task_known")

    def extended(self, extensions: int, due_s: float) -> None:
        """The timeout was put off."""
        self._event("peer_extended", extensions=extensions, due_s=due_s)

    def decided(self, outcome: str, limit: str, after_s: float) -> None:
        """The call was decided."""
        self._event("peer_decided", outcome=outcome, limit=limit, after_s=after_s)

    def found(self, ids: Sequence[object], topics: Mapping[str, str]) -> None:
        """The passages that an answer in time cites, of those that the peer was given. topics: of these, by id."""
        if self._recorder is not None:
            known = [str(found) for found in ids if found in topics]
            names = sorted({topics[found] for found in known})
            self._recorder.event("retrieved", self._peer, ids=known, topics=names, strategy="peer", router_used=False)

    def too_late(self, late: TooLate) -> None:
        """An answer came too late for its call."""
        self._event("peer_too_late", kind=late.kind, late_by_s=late.late_by_s)

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[list[str]]:
        """The block that asks the peer to stop; it appends what came of that to the list."""
        ended: list[str] = []
        if self._recorder is None:
            yield ended
            return
        # Of the run, though in a context of its own: see `PeerCaller._later`.
        with recording(self._recorder), self._call() as call:
            began_at = self._recorder.clock.now()
            self._event("peer_cancel_sent", cancel=call.call_id)
            try:
                yield ended
            finally:
                outcome = ended[-1] if ended else "failed"
                self._event("peer_cancel_ended", outcome=outcome, latency_s=self._recorder.clock.now() - began_at)

    def retriggered(self, results: Sequence[PeerResult]) -> None:
        """The parent goes on."""
        if self._recorder is not None:
            counts: dict[str, Any] = {name: sum(r.outcome == name for r in results) for name in PEER_OUTCOMES}
            self._recorder.event("peer_retriggered", **counts)

    def _call(self) -> contextlib.AbstractContextManager[LogicalCall]:
        assert self._recorder is not None
        return self._recorder.call("peer", self._peer, self._position)

    def _event(self, name: str, **detail: Any) -> None:
        if self._recorder is not None:
            self._recorder.event(name, self._peer, call=self._call_id, **detail)
