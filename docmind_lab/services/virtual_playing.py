"""One request under way in virtual time: its plan, played step by step without a thread.

What is done at each instant, and what the log's row says of it, is what the wall door does and says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from docmind_lab.services.log import RequestRow, RowOutcome
from docmind_lab.services.plan import RUN_IS_OVER, Chunk, Disconnect, Headers, Plan, Step, Wait
from docmind_lab.services.virtual_http import HttpConnection
from docmind_lab.virtual_time import Alarm, VirtualClock


@dataclass(eq=False)
class Playing:
    """A plan under way. It begins with `begin`, which a queue may put off, and tells `ended` when it is over.

    stops_on_disconnect: whether it ends when its client leaves; else it is played on, and nobody listens.
    """

    plan: Plan
    row: RequestRow
    connection: HttpConnection
    clock: VirtualClock
    stops_on_disconnect: bool
    ended: Callable[[Playing], None]
    _steps: list[Step] = field(default_factory=list, init=False)
    _wait: Wait | None = None
    _wait_begun_at: float = 0.0
    _due_at: float = 0.0
    _alarm: Alarm | None = None
    _answering: bool = False
    _client_gone: bool = False

    def begin(self, at: float, others: int = 0) -> None:
        """Play from an instant on; what is due by now is done before this returns.

        Args:
            at: Instant, seconds of the clock.
            others: Model calls under way beside it.
        """
        self._due_at = at
        self._steps = list(reversed(self.plan.steps_beside(others)))
        self._go_on()

    def client_left(self) -> None:
        """Nobody listens any more."""
        self._client_gone = True
        if self.row.outcome == "open":
            self.row.client_gone_at = self.clock.now()
            if self.stops_on_disconnect:
                self._break_off("client_gone")

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
            self.connection.reply(RUN_IS_OVER)

    # ---- the plan

    def _go_on(self) -> None:
        while self._steps:
            step = self._steps.pop()
            if isinstance(step, Wait):
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
        self.row.outcome, self.row.ended_at = outcome, self.clock.now()
        self.ended(self)
