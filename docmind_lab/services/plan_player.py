"""Plays one plan without a thread, at the instants that its waits say; both doors play all plans so.

What is done at each instant, and what the log's row says of it, is the same over sockets and in virtual time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from docmind_lab.core.clock import Clock
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.services.log import RequestRow, RowOutcome
from docmind_lab.services.plan import RUN_IS_OVER, SIGN_OF_LIFE_GAP_S, Chunk, Disconnect, Headers, Plan, Step, Wait
from docmind_lab.virtual_time import Alarm, VirtualClock


@dataclass(frozen=True)
class LoopClock:
    """A clock with the alarms of the event loop that runs; otherwise as the clock of a run in virtual time."""

    clock: Clock

    def now(self) -> float:
        """Return monotonic seconds."""
        return self.clock.now()

    def call_at(self, at_s: float, function: Callable[[], object]) -> asyncio.TimerHandle:
        """Call a function at an instant; it must not wait."""
        return asyncio.get_running_loop().call_later(max(0.0, at_s - self.now()), function)

    def note_effect(self) -> None:
        """Do nothing: real time needs no note of what is visible."""


class Connection(Protocol):
    """Takes a reply. What is sent goes out in its order."""

    def send(self, step: Headers | Chunk) -> None:
        """Send the head of a reply or a part of its body."""
        ...

    def finish(self) -> None:
        """Note that the reply is complete."""
        ...

    def drop(self) -> None:
        """Close the connection, even in the middle of a reply."""
        ...


@dataclass(eq=False)
class PlanPlayer:
    """Plays one plan from `begin` on, and calls `ended` when it is over. behaviour: if its client leaves before."""

    plan: Plan
    row: RequestRow
    connection: Connection
    clock: VirtualClock | LoopClock
    behaviour: ServerBehaviour
    ended: Callable[[PlanPlayer], None]
    _steps: list[Step] = field(default_factory=list, init=False)
    _wait: Wait | None = None
    _wait_begun_at: float = 0.0
    _due_at: float = 0.0
    _alarm: Alarm | asyncio.TimerHandle | None = None
    _answering: bool = False
    _client_gone: bool = False
    _has_begun: bool = False
    _ends_at_write: bool = False
    _notice: Alarm | asyncio.TimerHandle | None = None

    def begin(self, at: float, others: int = 0, since_s: float = 0.0) -> None:
        """Play from an instant on, all that is due by now at once. since_s: from the services' first request."""
        self._due_at, self._has_begun = at, True
        self._steps = list(reversed(self.plan.steps_beside(others, since_s)))
        self.row.fault = self.plan.fault_at(since_s)
        self._go_on()

    def client_left(self) -> None:
        """The client has left."""
        self._client_gone = True
        if self.row.outcome == "open":
            now = self.row.client_gone_at = self.clock.now()
            is_generating = self._answering or self.row.output_tokens > 0 or bool(self._wait and self._wait.tokens)
            phase = self.plan.phase(has_begun=self._has_begun, is_generating=is_generating)
            delay_s = self.behaviour.delay_s(phase, now - self.row.received_at)
            self._ends_at_write = self.behaviour.ends_at_next_write(phase)
            if delay_s == 0:
                self._noticed()
            elif not math.isinf(delay_s):
                self._notice = self.clock.call_at(now + delay_s, self._noticed)

    def _noticed(self) -> None:
        """The server notices that the client has left."""
        self._notice = None
        self._break_off("client_gone")

    def fail(self) -> None:
        """End it as an error: its connection has failed, perhaps before all of the reply was out."""
        if self.row.outcome == "open":
            self._break_off("error")
        elif self.row.outcome == "ok":
            self.row.outcome, self.row.ended_at = "error", self.clock.now()

    def cut(self) -> None:
        """End it, since its run is over: an error if nothing has been sent, a closed connection otherwise."""
        if self.row.outcome != "open":
            return
        self._break_off("ended")
        if self._client_gone:
            return
        if self._answering:
            self.connection.drop()
        else:
            for step in RUN_IS_OVER:
                assert isinstance(step, Headers | Chunk)
                self.connection.send(step)
            self.connection.finish()

    # ---- the plan

    def _go_on(self) -> None:
        while self._steps:
            step = self._steps.pop()
            if isinstance(step, Wait):
                if step.sign_of_life and step.seconds > SIGN_OF_LIFE_GAP_S:
                    rest = replace(step, seconds=step.seconds - SIGN_OF_LIFE_GAP_S)
                    self._steps += [rest, Chunk(step.sign_of_life)]
                    step = Wait(SIGN_OF_LIFE_GAP_S)
                self._wait, self._wait_begun_at, self._due_at = step, self._due_at, self._due_at + step.seconds
                if self._due_at > self.clock.now():
                    if not math.isinf(self._due_at):
                        self._alarm = self.clock.call_at(self._due_at, self._waited)
                    return
                self._end_wait(self._due_at, math.inf)
            elif isinstance(step, Disconnect):
                self._close("error")
                if not self._client_gone:
                    self.connection.drop()
                return
            elif not self._client_gone:
                self._send(step)
            elif self._ends_at_write:
                self._noticed()
                return
        self._close("error" if (self.row.status or 0) >= 400 else "ok")
        if self._answering and not self._client_gone:
            self.connection.finish()

    def _waited(self) -> None:
        self._alarm = None
        self._end_wait(self._due_at, math.inf)
        self._go_on()

    def _end_wait(self, at: float, elapsed_s: float) -> None:
        """Note the tokens of the wait under way, of which so much has passed."""
        assert self._wait is not None
        tokens = self._wait.tokens_by(elapsed_s)
        self._wait = None
        if tokens:
            self.row.token_spans.append((self._wait_begun_at, at, tokens))
            self.row.output_tokens += tokens
            self.clock.note_effect()

    def _send(self, step: Headers | Chunk) -> None:
        if isinstance(step, Headers):
            self.row.status, self.row.first_byte_at, self._answering = step.status, self.clock.now(), True
        else:
            self.row.last_byte_at = self.clock.now()
        self.connection.send(step)
        self.clock.note_effect()

    def _break_off(self, outcome: RowOutcome) -> None:
        now = self.clock.now()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._wait is not None:
            self._end_wait(now, now - self._wait_begun_at)
        self._close(outcome)

    def _close(self, outcome: RowOutcome) -> None:
        self._steps.clear()
        if self._notice is not None:
            self._notice.cancel()
            self._notice = None
        self.row.outcome, self.row.ended_at = outcome, self.clock.now()
        self.ended(self)
