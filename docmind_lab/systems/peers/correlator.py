"""Decide how each call to a peer ends: by the first of an answer, a timeout, a cancel or a failure.

No network and no timers here: whatever brings news calls one of these methods, from any thread. Each of them claims the
call first; who finds it claimed already says so in the log and does nothing. When the last call of an invocation is
decided, the parent is retriggered, once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.systems.peers.correlation import CorrelationEntry, PeerOutcome, PeerResult, PendingCalls

log = logging.getLogger(__name__)

Retrigger = Callable[[tuple[PeerResult, ...]], None]
"""Goes on with the parent, given the results in call order."""


@dataclass(frozen=True)
class TooLate:
    """An answer to a call that was decided before. late_by_s: seconds since that decision."""

    kind: Literal["late", "duplicate"]
    late_by_s: float


@dataclass
class _Invocation:
    """The calls that one step of a parent waits for. is_wanted: whether the parent still waits for results."""

    logical_task_id: str
    sub_task_ids: tuple[str, ...]
    order: tuple[str, ...]
    retrigger: Retrigger
    is_wanted: bool = True
    results: dict[str, PeerResult] = field(default_factory=dict)
    # Of each call that is decided: how, and when. What comes later is told from it.
    decided: dict[str, tuple[PeerOutcome, float]] = field(default_factory=dict)


class Correlator:
    """The pending calls of a parent process. clock: lateness is measured on it."""

    def __init__(self, store: PendingCalls | None = None, clock: Clock = WALL) -> None:
        self.store = PendingCalls() if store is None else store
        self._clock = clock
        self._invocations: dict[str, _Invocation] = {}
        self._lock = threading.Lock()

    def begin(self, entries: Sequence[CorrelationEntry], retrigger: Retrigger) -> None:
        """Register all calls of one invocation, before the first of them is sent.

        Two answers may come before the second call is sent; were that one not registered yet, its parent would go on
        without it. Raises: ConfigurationError when a call is pending already.
        """
        invocation = _Invocation(
            entries[0].logical_task_id,
            tuple(entry.sub_task_id for entry in entries),
            tuple(entry.function_call_id for entry in entries),
            retrigger,
        )
        with self._lock:
            self._invocations[entries[0].invocation_id] = invocation
        try:
            self.store.register(entries)
        except BaseException:
            self.forget(entries[0].invocation_id)
            raise

    # ---- news

    def answered(self, entry: CorrelationEntry, payload: Mapping[str, Any]) -> TooLate | None:
        """Complete a call that its peer answered; if it was decided before, return how late the answer is."""
        claimed = self.store.claim(entry.sub_task_id)
        if claimed is None:
            return self._lateness(entry)
        self._note_decision(claimed, "completed")
        self.deliver(PeerResult(claimed.function_call_id, claimed.peer_agent_name, "completed", payload), claimed)
        return None

    def timed_out(self, entry: CorrelationEntry) -> CorrelationEntry | None:
        """Claim a call whose timeout fired, for its result to be delivered; None if it was decided before.

        The caller cancels the peer's task first and delivers then, so that a parent that goes on at once
        does so with the cancel under way.
        """
        claimed = self.store.claim(entry.sub_task_id)
        if claimed is None:
            log.info("The timeout of call %s found it decided; nothing to do.", entry.sub_task_id)
            return None
        self._note_decision(claimed, "timed_out")
        if not claimed.peer_agent_name:
            log.warning("Call %s timed out and names no peer: no cancel can be sent.", entry.sub_task_id)
        return claimed

    def send_failed(self, entry: CorrelationEntry, error_type: str) -> bool:
        """Decide a call that could not be sent or lost its connection; return whether this decided it."""
        claimed = self.store.claim(entry.sub_task_id)
        if claimed is None:
            return False
        self._note_decision(claimed, "send_failed")
        log.warning("Call %s to peer %s failed: %s", entry.sub_task_id, claimed.peer_agent_name, error_type)
        error = f"the call to {claimed.peer_agent_name} failed: {error_type}"
        self.deliver(PeerResult(claimed.function_call_id, claimed.peer_agent_name, "send_failed", error=error), claimed)
        return True

    def parent_cancelled(self, entries: Sequence[CorrelationEntry]) -> list[CorrelationEntry]:
        """Decide the pending calls of a cancelled parent; return those to cancel. No retrigger follows."""
        if not entries:
            return []
        with self._lock:
            invocation = self._invocations.get(entries[0].invocation_id)
            if invocation is not None:
                invocation.is_wanted = False
        claimed = [entry for entry in (self.store.claim(entry.sub_task_id) for entry in entries) if entry is not None]
        for entry in claimed:
            self._note_decision(entry, "cancelled")
        return claimed

    def sign_of_life(self, entry: CorrelationEntry, seen: int) -> bool:
        """Put off a call's timeout if it was put off `seen` times so far; return whether it was put off."""
        return self.store.extend(entry.sub_task_id, seen)

    # ---- results

    def deliver(self, result: PeerResult, entry: CorrelationEntry) -> None:
        """Hand the result of a claimed call to its parent, and retrigger the parent if it was the last."""
        with self._lock:
            invocation = self._invocations.get(entry.invocation_id)
            if invocation is None or not invocation.is_wanted:
                log.info("The parent of call %s is gone; its result is dropped.", entry.sub_task_id)
                return
            invocation.results[result.function_call_id] = result
            if len(invocation.results) < len(invocation.order):
                return
            invocation.is_wanted = False
            in_order = tuple(invocation.results[call_id] for call_id in invocation.order)
        invocation.retrigger(in_order)

    def forget(self, invocation_id: str) -> None:
        """Drop an invocation of which nothing more is expected."""
        with self._lock:
            self._invocations.pop(invocation_id, None)

    def drop(self, logical_task_id: str) -> None:
        """Drop all pending calls of a task that is over."""
        with self._lock:
            over = {id_: known for id_, known in self._invocations.items() if known.logical_task_id == logical_task_id}
            for invocation_id in over:
                del self._invocations[invocation_id]
        for invocation in over.values():
            for sub_task_id in invocation.sub_task_ids:
                if self.store.claim(sub_task_id) is not None:
                    log.info("The parent of call %s is gone; the call is dropped.", sub_task_id)

    def known(self) -> tuple[str, ...]:
        """Return the invocations that are not forgotten yet."""
        with self._lock:
            return tuple(self._invocations)

    # ---- inside

    def _note_decision(self, entry: CorrelationEntry, outcome: PeerOutcome) -> None:
        with self._lock:
            invocation = self._invocations.get(entry.invocation_id)
            if invocation is not None:
                invocation.decided[entry.sub_task_id] = outcome, self._clock.now()

    def _lateness(self, entry: CorrelationEntry) -> TooLate:
        log.warning(
            "No correlation data found for sub-task %s. The task may have timed out or already completed. "
            "Ignoring late response.",
            entry.sub_task_id,
        )
        now = self._clock.now()
        with self._lock:
            invocation = self._invocations.get(entry.invocation_id)
            outcome, at = (
                ("timed_out", now)
                if invocation is None
                else invocation.decided.get(entry.sub_task_id, ("timed_out", now))
            )
        return TooLate("duplicate" if outcome == "completed" else "late", now - at)
