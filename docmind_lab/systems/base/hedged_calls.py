"""Hedged calls: a second request for a call that takes long; the answer that comes first counts.

    response = yield hedged(operation, wait_s, race)

The request that loses is cancelled below its client, where its connection is: a thread that waits for bytes finds the
end of the stream, a task is cancelled. Whatever its server goes on to do is in the server's log.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.core.deadlines import current_deadline, current_policy
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.core.sync_async import Operation


@dataclass
class Race:
    """The requests of one call, each at its place. admits_second: asked whether the second may be sent when due."""

    admits_second: Callable[[], bool]
    begun: int = 0
    ended: dict[int, tuple[Any, BaseException | None]] = field(default_factory=dict)

    def begin(self) -> int:
        """Note that a request begins, and return its place."""
        self.begun += 1
        return self.begun - 1

    @property
    def winner(self) -> int | None:
        """The place of the first request that brought a result; None while there is none."""
        return next((place for place, (_, error) in self.ended.items() if error is None), None)

    @property
    def is_decided(self) -> bool:
        """Whether one request has a result, or all have failed."""
        return self.winner is not None or len(self.ended) == self.begun

    def result(self) -> Any:
        """Return the result of the winner. Raises: the error of the request that failed last, if there is none."""
        if self.winner is not None:
            return self.ended[self.winner][0]
        _, error = list(self.ended.values())[-1]
        assert error is not None, "a request without an error has won"
        raise error


def hedged(call: Operation, wait_s: float, race: Race) -> Operation:
    """Return an operation that makes a call again if it has not ended after `wait_s` seconds; inf for never."""
    if math.isinf(wait_s):
        return call
    return Operation(lambda: _in_threads(call, wait_s, race), lambda: _in_tasks(call, wait_s, race))


async def _run_async(call: Operation, race: Race, place: int) -> None:
    try:
        result = await call.awaited()
    except asyncio.CancelledError as error:
        race.ended[place] = None, error
        raise
    except BaseException as error:  # noqa: BLE001 - raised again by whoever waits for the race
        race.ended[place] = None, error
    else:
        race.ended[place] = result, None


def _in_threads(call: Operation, wait_s: float, race: Race) -> Any:
    """Make the call in a thread, and once more in another one after `wait_s`."""
    changed = threading.Condition()
    holds: list[Hold] = []

    def work(place: int, hold: Hold) -> None:
        with hold_scope(hold):
            try:
                result, error = call.blocking(), None
            except BaseException as raised:  # noqa: BLE001 - raised again by whoever waits for the race
                result, error = None, raised
        with changed:
            race.ended[place] = result, error
            changed.notify_all()

    def begin() -> None:
        hold = Hold(current_deadline(), current_policy(), label="hedged call")
        holds.append(hold)
        context = contextvars.copy_context()
        place = race.begin()
        name = f"docmind-hedged-{place + 1}"
        threading.Thread(target=context.run, args=(work, place, hold), name=name, daemon=True).start()

    with changed:
        begin()
        if not changed.wait_for(lambda: race.is_decided, wait_s):
            if race.admits_second():
                begin()
            changed.wait_for(lambda: race.is_decided)
        losers = [hold for place, hold in enumerate(holds) if place not in race.ended]
    for hold in losers:
        hold.cancel()
    return race.result()


async def _in_tasks(call: Operation, wait_s: float, race: Race) -> Any:
    """Make the call in a task, and once more in another one after `wait_s`."""
    tasks = [asyncio.ensure_future(_run_async(call, race, race.begin()))]
    try:
        await asyncio.wait(tasks, timeout=wait_s)
        if not race.is_decided and race.admits_second():
            tasks.append(asyncio.ensure_future(_run_async(call, race, race.begin())))
        while not race.is_decided:
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return race.result()
