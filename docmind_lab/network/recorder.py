"""The recorder of one run: collects its events and attempts, and knows when the run is quiescent.

It is put in force with `recording(recorder)`; graphs, tools and middleware find it with `current_recorder()` and do
nothing when there is none. All methods may be called from any thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

import langsmith

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.attempts import Attempt, CallKind, LogicalCall, call_scope, current_call
from docmind_lab.network.snapshots import RawEvent, Result, Snapshot


class Recorder:
    """Collects the events, calls and attempts of one run; the network seam reports attempts to it.

    run_id: names the run to services. seed: keys its draws. deadline: the run's, whoever enforces it. on_attempt:
    called with each attempt as it starts, in the code that sends it; None for nobody.
    """

    on_attempt: Callable[[Attempt], None] | None = None

    def __init__(self, run_id: str, seed: int, deadline: Deadline, clock: Clock = WALL) -> None:
        self.run_id, self.seed, self.deadline, self.clock = run_id, seed, deadline, clock
        self.started_at = deadline.at_s - deadline.limit_s
        self.returned_at: float | None = None
        self._attempts: list[Attempt] = []
        self._events: list[RawEvent] = []
        self._open: dict[Hashable, tuple[str, int]] = {}
        self._in_threads: dict[object, RawEvent] = {}
        self._open_attempts = 0
        self._ordinals: Counter[tuple[str, str, str]] = Counter()
        self._shared_threads: set[int] = set()
        self._results: list[Result] = []
        self._changed = threading.Condition()
        self.event("run_started", at=self.started_at)

    # ---- calls

    @contextlib.contextmanager
    def call(
        self, kind: CallKind, role: str, position: str, *, cap_from_deadline: bool = False
    ) -> Iterator[LogicalCall]:
        """Open a logical call around a block: requests sent inside it are its attempts.

        position: "handoff.fan-out"; the ordinal within the role is added here. Calls of one role at one position
        follow each other, so the ordinal does not depend on the order of threads.
        """
        call = self._new_call(kind, role, position)
        call.cap_from_deadline = cap_from_deadline
        begun_at = self.clock.now()
        try:
            with call_scope(call):
                yield call
        finally:
            begun_at_s = begun_at - self.started_at
            self.event("call_ended", role, kind=kind, call_id=call.call_id, begun_at_s=begun_at_s)

    def _new_call(self, kind: CallKind, role: str, position: str) -> LogicalCall:
        with self._changed:
            self._ordinals[kind, role, position] += 1
            ordinal = self._ordinals[kind, role, position]
        step = f"{position}.{ordinal}"
        return LogicalCall(
            run_id=self.run_id,
            call_id=f"{kind}/{role}/{step}",
            role=role,
            step=step,
            kind=kind,
            seed=self.seed,
            observer=self,
            clock=self.clock,
        )

    def refuse(self, kind: CallKind, role: str, position: str, *, budget: str = "time") -> None:
        """Record a call that was not started because a budget was used up, as an attempt with outcome "refused".

        budget: which one; what a second budget refuses had some time left.
        """
        call = self._new_call(kind, role, position)
        now, by_time = self.clock.now(), budget == "time"
        timeout_s = 0.0 if by_time else math.inf
        refusal = Attempt(call, 1, now, timeout_s=timeout_s, capped=by_time, ended_at=now, outcome="refused")
        with self._changed:
            self._attempts.append(refusal)
        self.event("refused", role, **refusal_detail(kind, budget))

    def attempt_started(self, attempt: Attempt) -> None:
        """Record that a request is about to be sent."""
        with self._changed:
            self._attempts.append(attempt)
            self._open_attempts += 1
        call = attempt.call
        detail = {"kind": call.kind, "call_id": call.call_id, "attempt": attempt.number, "capped": attempt.capped}
        self.event("attempt_started", call.role, at=attempt.started_at, **detail)
        if self.on_attempt is not None:
            self.on_attempt(attempt)

    def attempt_ended(self, attempt: Attempt) -> None:
        """Record that a request is over."""
        with self._changed:
            self._open_attempts -= 1
            self._changed.notify_all()

    def note_tokens(self, input_tokens: int, output_tokens: int) -> None:
        """Add a response's token counts to the latest attempt of the call in force, of those that were answered."""
        call = current_call()
        with self._changed:
            latest = [attempt for attempt in reversed(self._attempts) if attempt.call is call]
            # Of two requests of a hedged call the first may have been answered, and the second cancelled.
            for attempt in sorted(latest, key=lambda each: each.outcome != "ok")[:1]:
                attempt.input_tokens, attempt.output_tokens = input_tokens, output_tokens

    def note_result(self, answer: str | None, documents: Iterable[Mapping[str, Any]]) -> None:
        """Note what a caller who is cut from now on has: documents, and an answer or draft (None for that noted last).

        It is in no table; its quality may be.
        """
        snapshot = tuple(documents)
        with self._changed:
            last = self._results[-1] if self._results else Result(0.0, "", ())
            result = Result(self.clock.now(), last.answer if answer is None else answer, snapshot)
            if (result.answer, result.documents) != (last.answer, last.documents):
                self._results.append(result)

    @property
    def results(self) -> tuple[Result, ...]:
        """What there was to return, by the instant at which it changed."""
        with self._changed:
            return tuple(self._results)

    # ---- events and work

    def event(self, name: str, role: str = "", *, at: float | None = None, **detail: Any) -> None:
        """Record an event. detail: names and numbers only, never text of a user or a document."""
        raw = RawEvent(self.clock.now() if at is None else at, name, role, detail)
        with self._changed:
            self._events.append(raw)

    def work_started(self, key: Hashable, label: str) -> None:
        """Record that a node, or the whole graph, works in this thread until `work_ended(key)`."""
        with self._changed:
            self._open[key] = (label, threading.get_ident())

    def work_ended(self, key: Hashable) -> None:
        """Record that the work has ended; a key that is not open is ignored."""
        with self._changed:
            self._open.pop(key, None)
            self._changed.notify_all()

    @contextlib.contextmanager
    def work(self, label: str) -> Iterator[None]:
        """Call `work_started` and `work_ended` around a block."""
        key = object()
        self.work_started(key, label)
        try:
            yield
        finally:
            self.work_ended(key)

    @contextlib.contextmanager
    def thread_work(self, role: str = "", node: str = "") -> Iterator[None]:
        """Record a block as work that an event loop or a node has handed to the calling thread.

        A thread cannot be cancelled, and may outlive the code that waits for it. So it is work of the run until its
        end, which is recorded as an event. node: the path of the node that it belongs to.
        """
        begun, key = RawEvent(self.clock.now(), "thread_started", role, {"node": node}), object()
        with self._changed:
            self._in_threads[key] = begun
        with self.work("worker thread"):
            try:
                yield
            finally:
                detail = {"node": node, "begun_at_s": begun.at - self.started_at}
                ended = RawEvent(self.clock.now(), "thread_ended", role, detail)
                with self._changed:
                    del self._in_threads[key]
                    # In virtual time, what took none: libraries have a thread look things up once in a process, and a
                    # table does not depend on which runs a process made before.
                    if ended.at > begun.at:
                        self._events += (begun, ended)

    def share_thread(self) -> None:
        """Never count the calling thread as left behind: it belongs to no run (an event loop's thread)."""
        with self._changed:
            self._shared_threads.add(threading.get_ident())

    def mark_returned(self) -> float:
        """Record that the caller has its answer, and return the instant."""
        self.returned_at = self.clock.now()
        self.event("returned", at=self.returned_at)
        return self.returned_at

    # ---- quiescence

    def quiet(self) -> bool:
        """Whether no node, graph or attempt is at work in this process."""
        with self._changed:
            return not self._open and self._open_attempts == 0

    def wait_quiet(self, timeout_s: float) -> bool:
        """Wait until `quiet`, at most `timeout_s`; return whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._open and self._open_attempts == 0, timeout_s)

    def unanswered_requests(self, known: set[tuple[str, int]]) -> int:
        """Count attempts that were sent and are not in `known`, a set of (call id, attempt number)."""
        with self._changed:
            sent = {(attempt.call.call_id, attempt.number) for attempt in self._attempts if attempt.sent_at is not None}
        return len(sent - known)

    def snapshot(self) -> Snapshot:
        """Return a copy of what has been recorded so far."""
        with self._changed:
            threads = {thread for _, thread in self._open.values()} - self._shared_threads
            now = self.clock.now()
            begun = (begun for begun in self._in_threads.values() if begun.at < now)
            return Snapshot(
                taken_at=now,
                # Copies, which later changes do not reach.
                attempts=tuple(map(dataclasses.replace, self._attempts)),
                events=(*self._events, *begun),
                threads_left=len(threads),
                open_work=tuple(label for label, _ in self._open.values()),
            )


def refusal_detail(kind: CallKind, budget: str) -> dict[str, Any]:
    """Return the detail of an event `refused`: the kind of call, and the budget unless that is time."""
    return {"kind": kind} if budget == "time" else {"kind": kind, "budget": budget}


def position_of(state: Mapping[str, Any]) -> str:
    """Return the logical position "handoff.fan-out" of an agent's work from its graph's state."""
    return f"{state.get('handoff_ordinal', 0)}.{state.get('fan_out_index', 0)}"


_recorder: ContextVar[Recorder | None] = ContextVar("docmind_lab_recorder", default=None)


def current_recorder() -> Recorder | None:
    """Return the recorder of the run that the calling code belongs to; None outside a run."""
    return _recorder.get()


def note_event(name: str, role: str = "", **detail: Any) -> None:
    """Record an event of the run that the calling code belongs to; do nothing outside a run."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.event(name, role, **detail)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[Recorder]:
    """Put a recorder in force during a block, and in threads and tasks started with its context.

    LangSmith's tracing is off there, whatever the environment says: a trace holds questions and documents.
    """
    token = _recorder.set(recorder)
    try:
        with langsmith.tracing_context(enabled=False):
            yield recorder
    finally:
        _recorder.reset(token)


def time_outside(calls: Iterable[tuple[float, float]], until_s: float) -> float:
    """Return the seconds up to `until_s` without a call under way. calls: (start, end) from the run's start."""
    covered_s, reached_s = 0.0, 0.0
    for begun_at_s, ended_at_s in sorted(calls):
        ended_at_s = min(ended_at_s, until_s)
        covered_s += max(0.0, ended_at_s - max(begun_at_s, reached_s))
        reached_s = max(reached_s, ended_at_s)
    return until_s - covered_s
