"""Call peers side by side, each under its own timeout: the async half of the parent agent.

    caller = PeerCaller(PeerClients(url, http), Correlator())
    results = await caller.call(calls, step="0", logical_task_id="run 7")     # in call order

All calls are registered before the first is sent. Cancels and late answers are off the critical path: they go on in
tasks of their own after `call` has returned, each bounded, and `idle` waits for them.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.network.recorder import current_recorder
from docmind_lab.systems.peers.client import FAILURES, PeerClients, PeerNews
from docmind_lab.systems.peers.correlation import CorrelationEntry, Limit, PeerResult, PeerTimeouts, describe_limit
from docmind_lab.systems.peers.correlator import Correlator
from docmind_lab.systems.peers.peer_events import CallNotes

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PeerCall:
    """A call that the model makes to a peer. task: what it is sent. topics: of the passages in it, by their ids."""

    function_call_id: str
    peer: str
    task: Mapping[str, Any]
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class _Child:
    """One call under way. left_s: seconds that the run's deadline leaves to it; inf without a deadline."""

    entry: CorrelationEntry
    call: PeerCall
    notes: CallNotes
    left_s: float
    started_at: float = 0.0
    due_s: float = math.inf
    limit: Limit = "peer_timeout"
    timer: asyncio.TimerHandle | None = None
    stream: asyncio.Task[None] | None = None
    task_id: str = ""
    is_working: bool = False
    extensions: int = 0
    is_decided: bool = False
    wants_cancel: bool = False


@dataclass
class PeerCaller:
    """Calls peers for one parent process, on one event loop."""

    clients: PeerClients
    correlator: Correlator = field(default_factory=Correlator)
    timeouts: PeerTimeouts = field(default_factory=PeerTimeouts)
    _background: dict[asyncio.Task[None], None] = field(default_factory=dict, init=False, repr=False)

    async def call(
        self, calls: Sequence[PeerCall], *, step: str, logical_task_id: str, left_s: float = math.inf
    ) -> tuple[PeerResult, ...]:
        """Call the peers and return their results in call order, as soon as all calls are decided.

        step: ordinal of the parent's step within its task; calls are told apart below it. left_s: what the run's
        deadline leaves to each of them. Cancelled, it claims and cancels what is pending, and raises; then nothing
        retriggers.
        """
        if not calls:
            return ()
        loop = asyncio.get_running_loop()
        # What a loop that ended with its run has left behind will never be over.
        self._background = {task: None for task in self._background if not task.get_loop().is_closed()}
        decided: asyncio.Future[tuple[PeerResult, ...]] = loop.create_future()
        invocation_id = f"{logical_task_id}/{step}"
        children = [
            self._child(call, f"{step}.{index}", logical_task_id, invocation_id, left_s)
            for index, call in enumerate(calls)
        ]

        def go_on(results: tuple[PeerResult, ...]) -> None:
            children[0].notes.retriggered(results)
            if not decided.done():
                decided.set_result(results)

        self.correlator.begin([child.entry for child in children], go_on)
        for child in children:
            self._start(child)
        try:
            return await decided
        except asyncio.CancelledError:
            self._on_parent_cancelled(children)
            raise
        finally:
            self._run_later(self._forget_when_over(invocation_id, children))

    def _child(self, call: PeerCall, position: str, logical_task_id: str, invocation_id: str, left_s: float) -> _Child:
        entry = CorrelationEntry(
            sub_task_id=f"{invocation_id}/{call.function_call_id}",
            function_call_id=call.function_call_id,
            peer_agent_name=call.peer,
            logical_task_id=logical_task_id,
            invocation_id=invocation_id,
            timeout_s=self.timeouts.due(0.0, left_s)[0],
        )
        return _Child(entry, call, CallNotes(call.peer, position, current_recorder()), left_s)

    # ---- one call

    def _start(self, child: _Child) -> None:
        child.started_at = asyncio.get_running_loop().time()
        child.stream = asyncio.create_task(self._listen(child))
        self._set_timer(child, *self.timeouts.due(0.0, child.left_s))

    def _set_timer(self, child: _Child, due_s: float, limit: Limit) -> None:
        if child.timer is not None:
            child.timer.cancel()
        child.due_s, child.limit = due_s, limit
        loop = asyncio.get_running_loop()
        child.timer = loop.call_at(child.started_at + due_s, self._on_timeout, child)

    async def _listen(self, child: _Child) -> None:
        """Send the call and handle the events of its stream until the stream ends."""
        why_not = "no answer"
        try:
            with child.notes.sent(child.entry.timeout_s):
                async for news in self.clients.send(child.call.peer, child.call.task, child.entry.timeout_s):
                    if news.kind == "ended":
                        why_not = f"the peer's task was {news.state}"
                    self._handle_news(child, news)
        except FAILURES as error:
            why_not = type(error).__name__
        # After a stream that gave its answer this finds the call decided.
        if self.correlator.send_failed(child.entry, why_not):
            self._note_decision(child, "send_failed")

    def _handle_news(self, child: _Child, news: PeerNews) -> None:
        if news.kind == "known":
            child.task_id = news.task_id
            child.notes.event("peer_task_known")
            if child.wants_cancel:
                self._run_later(self._cancel(child))
        elif news.kind == "working":
            self._on_sign_of_life(child)
        elif news.kind == "answer":
            payload = dict(news.payload or {})
            too_late = self.correlator.answered(child.entry, payload)
            if too_late is None:
                self._note_decision(child, "completed")
                child.notes.passages_found(payload.get("ids", ()), child.call.topics)
            else:
                child.notes.event("peer_too_late", kind=too_late.kind, late_by_s=too_late.late_by_s)

    def _on_sign_of_life(self, child: _Child) -> None:
        if not child.is_working:
            child.is_working = True  # the first says that work has begun, at once; there is nothing to put off yet
            return
        since_s = asyncio.get_running_loop().time() - child.started_at
        due_s, limit = self.timeouts.due(since_s, child.left_s)
        if child.is_decided or due_s <= child.due_s:
            return
        if self.correlator.sign_of_life(child.entry, child.extensions):
            child.extensions += 1
            child.notes.event("peer_extended", extensions=child.extensions, due_s=due_s)
            self._set_timer(child, due_s, limit)

    def _on_timeout(self, child: _Child) -> None:
        claimed = self.correlator.timed_out(child.entry)
        if claimed is None:
            return
        self._note_decision(child, "timed_out", child.limit)
        self._want_cancel(child, self.timeouts.listen_s)
        error = describe_limit(child.limit, child.due_s)
        result = PeerResult(claimed.function_call_id, claimed.peer_agent_name, "timed_out", error=error)
        self.correlator.deliver(result, claimed)

    def _on_parent_cancelled(self, children: Sequence[_Child]) -> None:
        entries = self.correlator.parent_cancelled([child.entry for child in children])
        claimed = {entry.sub_task_id for entry in entries}
        for child in children:
            if child.entry.sub_task_id in claimed:
                self._note_decision(child, "cancelled")
                # As long as a cancel needs: late answers are no longer counted.
                self._want_cancel(child, self.timeouts.cancel_s)

    def _note_decision(self, child: _Child, outcome: str, limit: str = "") -> None:
        child.is_decided = True
        if child.timer is not None:
            child.timer.cancel()
        after_s = asyncio.get_running_loop().time() - child.started_at
        child.notes.event("peer_decided", outcome=outcome, limit=limit, after_s=after_s)

    # ---- off the critical path

    def _want_cancel(self, child: _Child, listens_s: float) -> None:
        child.wants_cancel = bool(child.entry.peer_agent_name)
        if child.stream is not None:
            limit = asyncio.get_running_loop().call_later(listens_s, child.stream.cancel)
            child.stream.add_done_callback(lambda _: limit.cancel())
        if child.wants_cancel and child.task_id:
            self._run_later(self._cancel(child))

    async def _cancel(self, child: _Child) -> None:
        """Ask the peer to stop, within `cancel_s`. The reply changes no decision."""
        peer, name = child.entry.peer_agent_name, child.entry.sub_task_id
        with child.notes.cancelling() as ended:
            try:
                async with asyncio.timeout(self.timeouts.cancel_s):
                    ended.append(await self.clients.cancel(peer, child.task_id))
            except (*FAILURES, TimeoutError) as error:
                ended.append("failed")
                log.error("The cancel of call %s to peer %s failed: %s", name, peer, type(error).__name__)
        if ended != ["failed"]:
            log.info("The cancel of call %s to peer %s: %s", name, peer, ended[0])

    async def _forget_when_over(self, invocation_id: str, children: Sequence[_Child]) -> None:
        """Forget the invocation once its streams have ended, so that late answers are still recognised."""
        streams = [child.stream for child in children if child.stream is not None]
        await asyncio.wait(streams)
        self.correlator.forget(invocation_id)

    def _run_later(self, work: Coroutine[Any, Any, None]) -> None:
        # In no deadline's scope: a cancel that is due when nothing is left of the budget is sent all the same.
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._background[task] = None
        task.add_done_callback(lambda done: self._background.pop(done, None))

    async def idle(self) -> None:
        """Wait until all background work for calls has ended."""
        while self._background:
            await asyncio.wait(list(self._background))
