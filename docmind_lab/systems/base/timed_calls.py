"""One model call under the time policies in force: its second request, what its model is told, and its tools.

The second request is for a call that takes long; the answer that comes first counts. The request that loses is
cancelled below its client, where its connection is: a thread that waits for bytes finds the end of the stream, a task
is cancelled. Whatever its server goes on to do is in the server's log.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass
from typing import Any, Final

from langchain.agents.middleware import ModelRequest

from docmind_lab.alternatives.enforcement.wrap_up_middleware import request_with_line, without_tools
from docmind_lab.core.budgets import current_meter
from docmind_lab.core.deadlines import Deadline, PropagationPolicy, current_deadline, current_policy
from docmind_lab.core.errors import BudgetError
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish, in_daemon_thread
from docmind_lab.core.time_policies import time_left_line
from docmind_lab.network.recorder import note_event


def hedged(call: Operation, wait_s: float, admits_second: Callable[[], bool]) -> Operation:
    """Return an operation that makes a call again if it has not ended after `wait_s` seconds; inf for never.

    admits_second: asked whether the second request may be sent when it is due.
    """
    if math.isinf(wait_s):
        return call

    def in_threads() -> Any:
        holds: dict[Any, Hold] = {}

        def begin() -> Any:
            hold = Hold(current_deadline(), current_policy(), label="hedged call")
            thread = f"docmind-hedged-{len(holds) + 1}"
            request = in_daemon_thread(functools.partial(_held, call, hold), thread)
            holds[request] = hold
            return request

        return finish(_race(begin, lambda request: holds[request].cancel(), wait_s, admits_second))

    async def in_tasks() -> Any:
        tasks: list[asyncio.Future[Any]] = []

        def begin() -> Any:
            tasks.append(asyncio.ensure_future(call.awaited()))
            return tasks[-1]

        try:
            return await afinish(_race(begin, lambda request: request.cancel(), wait_s, admits_second))
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)

    return Operation(in_threads, in_tasks)


def _held(call: Operation, hold: Hold) -> Any:
    with hold_scope(hold):
        return call.blocking()


def _race(
    begin: Callable[[], Any], cancel: Callable[[Any], object], wait_s: float, admits_second: Callable[[], bool]
) -> Steps[Any]:
    """Make a call, and once more after `wait_s`; return the first result, or raise the error of who failed last.

    begin: begins a request and returns its future, of a thread or a task. cancel: ends one that has lost.
    """
    requests, ended = [begin()], list[Any]()
    limit_s: float | None = wait_s
    try:
        while not any(map(_has_result, ended)) and len(ended) < len(requests):
            pending = [request for request in requests if request not in ended]
            done, _ = yield Operation(
                functools.partial(futures.wait, pending, limit_s, futures.FIRST_COMPLETED),
                functools.partial(asyncio.wait, pending, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED),
            )
            ended += [request for request in pending if request in done]
            if not done and admits_second():
                requests.append(begin())
            limit_s = None
    finally:
        for request in requests:
            if request not in ended:
                cancel(request)
    return next(filter(_has_result, ended), ended[-1]).result()


def _has_result(request: Any) -> bool:
    return not request.cancelled() and request.exception() is None


_ANSWERING_BY_TOOL: Final = frozenset({"router", "planner", "validation"})
"""Roles whose tool is how they answer, so it stays when little time is left."""


def winds_down(deadline: Deadline) -> bool:
    """Return whether so little time is left that the policy in force takes the tools away."""
    policy = current_policy().policies.wind_down
    return policy is not None and deadline.remaining() < policy.share * deadline.limit_s


def note_wound_down(role: str, deadline: Deadline) -> None:
    """Record that tools were taken away, or that no further search begins. deadline: of the run."""
    note_event("wound_down", role, left_s=deadline.remaining())


@dataclass(frozen=True)
class TimedCall:
    """The attempts of one model call under a deadline, and the policy that applies it."""

    role: str
    deadline: Deadline
    policy: PropagationPolicy

    def prepared(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """Return the request with what its model is told of the time left, and without tools when little is left."""
        deadline, aware = self.deadline, self.policy.policies.aware
        if request.tools and self.role not in _ANSWERING_BY_TOOL and winds_down(deadline):
            note_wound_down(self.role, deadline)
            request = without_tools(request)
        return request_with_line(
            request, "" if aware is None else time_left_line(deadline.remaining(), deadline.limit_s)
        )

    def hedged(self, call: Operation) -> Operation:
        """Return the operation of an attempt, with its second request if there may be one."""
        hedge = self.policy.policies.hedge
        return call if hedge is None else hedged(call, hedge.after_s, lambda: self._admits_second(hedge.after_s))

    def _admits_second(self, after_s: float) -> bool:
        meter = current_meter()
        try:
            if meter is not None:
                meter.admit(self.role, "middleware")
        except BudgetError:
            return False
        note_event("hedged", self.role, kind="llm", after_s=after_s)
        return True
