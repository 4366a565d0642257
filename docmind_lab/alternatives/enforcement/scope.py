"""`deadline`: holds the requests of any block of code to a deadline, with or without a graph."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType

from docmind_lab.alternatives.enforcement.hooks import install_lazily
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import BudgetRefused, DeadlineError, RunCut
from docmind_lab.core.holds import Hold, current_hold, hold_scope
from docmind_lab.core.shown import ShownAsCode

# What a cut request needs to unwind through its client on a busy machine, before its task is cancelled.
_CANCEL_SLACK_S = 0.01


class deadline(ShownAsCode):  # noqa: N801 - used as a function
    """Hold all requests of a block to a deadline: `with deadline(20):` or `async with deadline(20):`.

    A request under way at the deadline is cut, and none is started after it, retries included. In `async with`
    everything else that the block awaits is cancelled too. In `with`, code that does not wait for a request runs on to
    its next request. Inside another deadline, the nearer one applies.

    Args:
        limit: Seconds from the start of the block, or a `Deadline`.
        label: The name of the block, in errors.

    Raises:
        DeadlineExceeded: At the end of the block, if the deadline has cut it.
        ConfigurationError: Not a finite number of seconds above 0.
    """

    def __init__(self, limit: float | Deadline, *, label: str = "request") -> None:
        self._limit, self._label = limit, label
        self._stack: contextlib.ExitStack | None = None
        self._timeout: asyncio.Timeout | None = None
        self.hold: Hold | None = None

    def __repr__(self) -> str:
        limit = repr(self._limit) if isinstance(self._limit, Deadline) else f"{self._limit:g} s"
        return f"deadline: {self._label}, {limit}, {'not ' if self._stack is None else ''}in force"

    def __enter__(self) -> Deadline:
        if self._stack is not None:
            raise RuntimeError("this deadline is in force already; make another one for another block")
        install_lazily()
        own = self._limit if isinstance(self._limit, Deadline) else Deadline.after(self._limit)
        self.hold = Hold(own, label=self._label)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(hold_scope(self.hold))
        return self._in_force

    @property
    def _in_force(self) -> Deadline:
        assert self.hold is not None, "only a block that was entered has a deadline"
        in_force = self.hold.in_force or self.hold.deadline
        assert in_force is not None, "the hold of a block has the deadline that it was made with"
        return in_force

    @property
    def _is_released(self) -> bool:
        return self.hold is not None and self.hold.is_released

    def release(self) -> None:
        """End the deadline inside its block, unless it has cut it: what follows, and what the block left, goes on."""
        if self._timeout is not None:
            if self._timeout.expired():
                return
            self._timeout.reschedule(None)
        if self.hold is not None:
            self.hold.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hold, stack, self._stack = self.hold, self._stack, None
        assert stack is not None, "only a block that was entered ends"
        stack.close()
        # The cut of a deadline around this one goes on to its own block.
        cut = None if hold is None or hold.was_cancelled else _cut_of(hold, error)
        if cut is not None:
            refused = cut.error
            if not isinstance(refused, BudgetRefused):
                raise cut.error from error
            # Cut all the same, though it was between two requests: callers catch one kind of error.
            raise self._in_force.exceeded(self._label, refused.source) from error
        # A client that is given what is left may raise a timeout of its own at the deadline.
        is_own = isinstance(error, TimeoutError) and not isinstance(error, DeadlineError)
        if is_own and not self._is_released and self._in_force.ends_a_wait:
            raise self._in_force.exceeded(self._label, "block") from error

    async def __aenter__(self) -> Deadline:
        in_force = self.__enter__()
        assert self.hold is not None, "a block that was entered has a hold"
        loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout_at(self._cancelled_at_s(loop))
        await self._timeout.__aenter__()
        self.hold.at_renewal = lambda: loop.call_soon_threadsafe(self._renew, loop)
        return in_force

    def _cancelled_at_s(self, loop: asyncio.AbstractEventLoop) -> float | None:
        """Return when the block is cancelled, on the clock of its loop; None for never."""
        ends_by = None if self.hold is None else self.hold.ends_by
        return None if ends_by is None else loop.time() + max(0.0, ends_by.remaining()) + _CANCEL_SLACK_S

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        # The deadline around this one was the nearer, and has been released.
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(self._cancelled_at_s(loop))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._timeout is not None, "only a block that was entered ends"
        timeout, self._timeout = self._timeout, None
        try:
            await timeout.__aexit__(kind, error, trace)
        except TimeoutError as timed_out:
            self.__exit__(None, None, None)
            raise self._in_force.exceeded(self._label, "block") from timed_out
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.__exit__(kind, error, trace)


def _cut_of(hold: Hold, error: BaseException | None) -> RunCut | None:
    """Return the first cut of a hold in an error or a group of errors, as task groups raise; None without one."""
    if isinstance(error, BaseExceptionGroup):
        return next((cut for inner in error.exceptions if (cut := _cut_of(hold, inner)) is not None), None)
    return error if isinstance(error, RunCut) and error.hold is hold else None


def remaining_s() -> float | None:
    """Return the seconds left until the deadline in force; None outside every deadline, negative once it has passed."""
    hold = current_hold()
    deadline = None if hold is None else hold.in_force
    return None if deadline is None else deadline.remaining()
