"""Holds: what the requests of the running code are held to, how a hold ends early, and what it cut.

    with hold_scope(Hold(deadline)) as hold:
        ...                          # the network hooks hold every request here to the deadline
    hold.requests_cut

A hold lives in the context, not in a registry: code that runs in a thread or task of the block, even after the block
has ended, still finds the hold, and is refused when its time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from docmind_lab.core.deadlines import (
    DEFAULT_POLICY,
    Deadline,
    PropagationPolicy,
    in_force,
    in_force_scope,
    nearer,
)
from docmind_lab.core.errors import BudgetError, CallerLeft, RunCut
from docmind_lab.core.limits import LimitCut
from docmind_lab.core.streamed_answers import StreamedAnswer
from docmind_lab.core.time_policies import WrapUpNote


@dataclass(eq=False)
class Hold:
    """What the requests of a block are held to.

    Args:
        deadline: No request goes on past it; None for no limit of time.
        policy: How the deadline applies to each request: in total or to each read, and the least time worth starting.
        label: The name of what is held, in errors.
        name_work: Names what the calling code works on, such as a node.
        frees_tasks: Whether a task that was made under it, and that nobody awaits, goes on past it.
        only_tells: Whether the deadline around it is told, and cuts nothing: the hold of such a task.
        every_client: Whether requests of every client are held, as in a run of the lab, and not only those of clients
            that production holds.
        answers: Of models, those that stream and those that were cut; None where nobody will ask for their texts.
        returned: What tools have returned, each with its name; None where nobody will ask for it.
    """

    deadline: Deadline | None
    policy: PropagationPolicy = DEFAULT_POLICY
    label: str = "request"
    name_work: Callable[[], str] = field(default=str, repr=False)
    frees_tasks: bool = False
    only_tells: bool = False
    every_client: bool = False
    answers: list[StreamedAnswer] | None = field(default=None, repr=False)
    returned: list[tuple[str, Any]] | None = field(default=None, repr=False)
    requests_cut: int = 0
    requests_refused: int = 0
    limit_cuts: list[LimitCut] = field(default_factory=list, repr=False)
    wrap_ups: list[WrapUpNote] = field(default_factory=list, repr=False)
    is_cancelled: bool = False
    is_released: bool = False
    at_renewal: Callable[[], object] | None = field(default=None, repr=False)
    _outer: Hold | None = field(default=None, repr=False)
    _inside: set[Hold] = field(default_factory=set, repr=False)
    _tasks: dict[Hold, asyncio.Task[Any]] = field(default_factory=dict, repr=False)
    _waits: set[Callable[[], None]] = field(default_factory=set, repr=False)
    # By a key of its own for each piece of work: the context in which it was handed to a thread.
    _threads: dict[object, contextvars.Context] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        _holds.add(self)

    @property
    def is_over(self) -> bool:
        """Whether nothing may be started any more: it was cancelled, or less than the policy's floor is left."""
        if self.was_cancelled or (not self.only_tells and self._outer is not None and self._outer.is_over):
            return True
        deadline = self.in_force
        return deadline is not None and deadline.remaining() <= self.policy.floor_s

    @property
    def in_force(self) -> Deadline | None:
        """The deadline that applies now, the hold's own or a nearer one around it; None where there is none."""
        return self._in_place()

    @property
    def ends_by(self) -> Deadline | None:
        """The deadline that ends the block whatever becomes of it: that in force, but for one that is only told."""
        return self._nearer(None if self._outer is None or self.only_tells else self._outer.ends_by)

    def _nearer(self, around: Deadline | None) -> Deadline | None:
        own = None if self.is_released else self.deadline
        if around is None or (own is not None and own.at_s < around.at_s):
            return own
        # Once the hold around is released, this hold's own deadline takes the place of that.
        return around if self.is_released else Deadline(around.at_s, around.limit_s, around.clock, self._in_place)

    def _in_place(self) -> Deadline | None:
        # Asked for several times by every request, and most holds have no other one around them.
        if self._outer is None:
            return None if self.is_released else self.deadline
        around = self._outer._in_place()
        if self.only_tells and around is not None and around.remaining() <= self.policy.floor_s:
            around = None
        return self._nearer(around)

    def _put_inside(self, outer: Hold | None) -> None:
        """Note the hold around this one, and have what bounds this one's requests ask for the deadline in force."""
        if outer is not None and self is not outer and not self.only_tells:
            self._outer = outer
            outer._inside.add(self)
        if self.deadline is not None and self.deadline.in_place != self._in_place:
            own = self.deadline
            self.deadline = Deadline(own.at_s, own.limit_s, own.clock, self._in_place)

    def release(self) -> None:
        """End the hold without a cut: what its block left behind goes on, under the hold around it if there is one.

        A request that waits for its response goes on too. One that still waits for a connection may end by the
        deadline. A hold inside, for which the deadline of this one was the nearer, has its own again.
        """
        self.is_released = True
        self._renew_inside()

    def _renew_inside(self) -> None:
        for inner in list(self._inside):
            if inner.at_renewal is not None:
                inner.at_renewal()
            inner._renew_inside()

    def for_task(self) -> Hold:
        """Return the hold of a new task that may outlive this one; `tie` ties it to the task."""
        outer = self._outer if self.only_tells else self
        return Hold(None, self.policy, self.label, self.name_work, frees_tasks=True, only_tells=True, _outer=outer)

    def tie(self, task: asyncio.Task[Any]) -> None:
        """Have this hold of a task cut what the task has left in threads, if the task is cancelled.

        A task that is awaited is cancelled with whoever awaits it. That shows which tasks are.
        """
        outer = self._outer
        assert outer is not None, "the hold of a task has the hold that the task was made under around it"

        def end(ended: asyncio.Task[Any]) -> None:
            if outer._tasks.pop(self, None) is not None and ended.cancelled():
                self._end_with(outer)

        outer._tasks[self] = task
        task.add_done_callback(end)

    def let_go(self) -> None:
        """Let the tasks go that were made under the hold, but for those that are cancelled with it."""
        while self._tasks:
            of_task, task = self._tasks.popitem()
            if task.cancelling():
                of_task._end_with(self)

    def _end_with(self, outer: Hold) -> None:
        self.only_tells = False
        if outer.is_over:
            self.cancel()

    def refuse_if_over(self, source: str = "network") -> None:
        """Raise `RunCut` if no request may start any more. source: what enforces the hold, in the error."""
        if self.is_over:
            with self._lock:
                self.requests_refused += 1
            # What a request that was cut leaves to a thread, such as the end of its trace, is part of that cut.
            is_unwinding = source == "thread" and self.requests_cut > 0
            raise RunCut(self._error(source, was_started=is_unwinding), self)

    def cut(self, error: BudgetError | None = None) -> RunCut:
        """Return the error to raise in a request that the hold has cut, and count the request.

        error: what the run ends with; the hold's own error when left out.
        """
        with self._lock:
            self.requests_cut += 1
        return RunCut(self._error("network", was_started=True) if error is None else error, self)

    def note(self, what: Literal["limit_cuts", "wrap_ups", "returned", "answers"], item: Any) -> None:
        """Note something here, and in every hold around this one that keeps its kind. what: the list of its kind."""
        for holder in self._with_outer():
            kept: list[Any] | None = getattr(holder, what)
            if kept is not None:
                kept.append(item)

    def _with_outer(self) -> Iterator[Hold]:
        holder: Hold | None = self
        while holder is not None:
            yield holder
            holder = holder._outer

    def drop_answer(self, answer: StreamedAnswer) -> None:
        """Keep an answer no longer: it has come whole, or its call has failed by itself."""
        for holder in self._with_outer():
            with contextlib.suppress(ValueError):
                (holder.answers or []).remove(answer)

    @property
    def keeps_answers(self) -> bool:
        """Whether this hold, or one around it, keeps the answers that stream."""
        return any(holder.answers is not None for holder in self._with_outer())

    def _error(self, source: str, *, was_started: bool) -> BudgetError:
        if any(holder.is_cancelled for holder in self._with_outer()):
            return CallerLeft(f"{self.label}: cancelled by its caller", role=self.label, source=source)
        deadline = self.in_force or self.deadline
        assert deadline is not None, "a hold that was not cancelled ends by a deadline"
        make = deadline.exceeded if was_started else deadline.refused
        return make(self.label, source)

    def cancel(self) -> None:
        """End the hold now: refuse what starts, and end the waits of requests that block a thread."""
        self.is_cancelled = True
        for inner in list(self._inside):
            inner.cancel()
        # What begins to wait from now on finds the hold cancelled. What has ended its wait has left under this lock:
        # its connection may serve another request by now.
        with self._lock:
            for end_wait in self._waits:
                end_wait()

    @property
    def was_cancelled(self) -> bool:
        """Whether this hold, or one around it, was cancelled."""
        return self.is_cancelled or (self._outer is not None and self._outer.was_cancelled)

    def as_thread_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function for a thread: it counts as work of the calling code there, which no cancellation ends.

        The wrapped function raises `RunCut` if the hold is over when it is to begin.
        """
        # The name is worked out only where somebody asks for it.
        context = contextvars.copy_context()

        def work(*arguments: Any) -> Any:
            self.refuse_if_over("thread")
            key = object()
            with self._lock:
                self._threads[key] = context
            try:
                return function(*arguments)
            finally:
                with self._lock:
                    del self._threads[key]

        return work

    @property
    def still_running(self) -> tuple[str, ...]:
        """The names of work that threads are doing now."""
        with self._lock:
            begun_in = tuple(self._threads.values())
        return tuple(context.run(self.name_work) for context in begun_in)


_holds: weakref.WeakSet[Hold] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """Free the holds of a forked process from its parent's threads, which may have a lock, and from their requests."""
    for hold in _holds:
        hold._lock = threading.Lock()
        hold._waits.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def current_hold() -> Hold | None:
    """Return the hold on the running code; None outside every hold."""
    hold: Hold | None = in_force().hold
    return hold


class blocking_on:  # noqa: N801 - used as the functions beside it are
    """Let a cancelled hold end the wait of a block, by a function that any thread may call.

    Entered for every read of a held request, so it is no generator.
    """

    __slots__ = ("_end_wait", "_hold")

    def __init__(self, end_wait: Callable[[], None]) -> None:
        self._end_wait = end_wait

    def __enter__(self) -> None:
        self._hold = current_hold()
        if self._hold is not None:
            with self._hold._lock:
                self._hold._waits.add(self._end_wait)
            if self._hold.was_cancelled:
                self._end_wait()

    def __exit__(self, *exc_info: object) -> None:
        if self._hold is not None:
            with self._hold._lock:
                self._hold._waits.discard(self._end_wait)


class hold_scope(in_force_scope):  # noqa: N801 - used as the functions beside it are
    """Put a hold in force during a block. Inside another one, the nearer deadline applies.

    `None` frees the block of every hold and deadline.
    """

    __slots__ = ("_entry", "_hold")

    def __init__(self, hold: Hold | None) -> None:
        self._hold = hold

    def __enter__(self) -> Hold | None:  # type: ignore[override]
        around, hold, deadline = in_force(), self._hold, None
        if hold is not None:
            hold._put_inside(around.hold)
            own = hold.in_force if hold.policy.cap == "total" else None
            deadline = nearer(own, None if around.deadline is None else around.deadline.in_force)
        super().__init__(deadline=deadline, hold=hold)
        super().__enter__()
        self._entry = in_force()
        return hold

    def __exit__(self, *exc_info: object) -> None:
        hold = self._hold
        if hold is not None and hold._outer is not None:
            hold._outer._inside.discard(hold)
        if in_force() is self._entry:
            with contextlib.suppress(ValueError):
                super().__exit__()
                return
        # A generator that is dropped half way ends in another context, or before a block that began inside it. What
        # cannot be taken off here would refuse requests of code that has nothing to do with it.
        if hold is not None and not hold.was_cancelled:
            hold.release()
