"""asyncio's own event loop with a virtual clock and virtual waiting."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from docmind_lab.core.errors import SimulationError
from docmind_lab.virtual_time.kernel import Actor, Kernel, calling_actor, current_actor
from docmind_lab.virtual_time.real_primitives import SimulationOver
from docmind_lab.virtual_time.reports import place_of_code

if TYPE_CHECKING:
    _Loop = Any
else:
    _Loop = asyncio.BaseEventLoop


class _Task(asyncio.Task[Any]):
    """A task whose hash is the same in every run, so that sets of tasks have one order."""

    def __init__(self, loop: VirtualEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = next(loop.numbers)
        super().__init__(coroutine, loop=loop, **options)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    """A future whose hash is the same in every run."""

    def __init__(self, loop: VirtualEventLoop) -> None:
        self._number = next(loop.numbers)
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _TimerHandle(asyncio.TimerHandle):
    """A timer of the event loop; timers of the same instant fire in order of creation."""

    __slots__ = ("_ticket",)

    def __init__(self, loop: VirtualEventLoop, when: float, callback: Any, args: Any, context: Any) -> None:
        super().__init__(when, callback, args, loop, context)
        self._ticket = next(loop.numbers)

    def __lt__(self, other: Any) -> bool:
        return (self._when, self._ticket) < (other._when, other._ticket)  # type: ignore[attr-defined]


class VirtualEventLoop(_Loop):  # type: ignore[misc]
    """The event loop of an actor. It has no sockets: bytes come through a door below the HTTP clients."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.numbers = itertools.count()
        self._kernel, self._sleepers, self._poked = kernel, deque[Actor](), False
        # BaseEventLoop waits by calling `self._selector.select(timeout)`.
        self._selector = self
        self._task_factory = _Task
        self._made_at = place_of_code(sys._getframe(1))
        self._ended_with_run = False
        kernel.loops.append(self)

    def time(self) -> float:
        """Return the virtual seconds of the loop's clock."""
        return self._kernel.now_s

    def create_future(self) -> asyncio.Future[Any]:
        """Return a new future of this loop."""
        return _Future(self)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """Call a function at an instant, as in asyncio; timers of one instant fire in order of creation."""
        self._check_closed()
        timer = _TimerHandle(self, when, callback, args, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def select(self, timeout: float | None) -> tuple[()]:
        """Wait in virtual time until a timer is due or another thread calls in."""
        calling_actor().loop = self
        if timeout is not None and timeout <= 0:
            self._kernel.pause()
        elif not self._poked:
            self._kernel.wait(self._sleepers, timeout, "an event of its event loop")
        self._poked = False
        return ()

    def _process_events(self, event_list: tuple[()]) -> None:
        pass

    def _write_to_self(self) -> None:
        # What call_soon_threadsafe does to end a wait.
        self._poked = True
        self._kernel.wake_one(self._sleepers)

    async def shutdown_default_executor(self, *timeout: float | None) -> None:
        """Shut the executor down as asyncio does; after a failure, do not wait for its threads."""
        if self._kernel.failure is None and not self._kernel.ending:
            await super().shutdown_default_executor(*timeout)
            return
        self._executor_shutdown_called = True
        if self._default_executor is not None:
            self._default_executor.shutdown(wait=False)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an exception as asyncio does, unless the run's own end caused it."""
        if not isinstance(context.get("exception"), SimulationOver):
            super().call_exception_handler(context)

    def end(self) -> None:
        """Close a loop whose thread ended with the run, and the coroutines that it had not finished."""
        if self.is_closed() or self.is_running():
            return
        for task in asyncio.all_tasks(self):
            # Nobody forgot this task; the run is over.
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            # Closed from another thread and context than it ran in, it may raise whatever its last steps come to.
            with suppress(Exception, SimulationOver):
                coroutine: Any = task.get_coro()
                coroutine.close()
        self._ended_with_run = True
        self.close()

    def _check_closed(self) -> None:
        if self._ended_with_run:
            what = f"the event loop made at {self._made_at} ended with the run in virtual time that it was made in"
            actor = current_actor()
            if actor is not None:
                # Later runs would fail where the first did not: no measurement of anything.
                actor.kernel.refuse(f"{what}; make one in each run. A loop of an earlier run")
            raise SimulationError(f"{what}; make one in each run, or before all of them outside")
        super()._check_closed()


def _refused(name: str) -> Any:
    def refuse(loop: VirtualEventLoop, *_: Any, **__: Any) -> Any:
        loop._kernel.refuse(f"{name} of an event loop, which has no sockets there,")

    return refuse


# What asyncio's base class leaves to loops with sockets. Its own error is one that a fallback would take for a refused
# connection.
for _name in (
    *("create_connection", "create_server", "create_datagram_endpoint", "create_unix_connection"),
    *("create_unix_server", "connect_accepted_socket", "connect_read_pipe", "connect_write_pipe", "sock_connect"),
    *("sock_accept", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendto", "add_reader"),
    *("add_writer", "start_tls", "sendfile", "sock_sendfile"),
):
    setattr(VirtualEventLoop, _name, _refused(_name))
