"""A plan: what a simulated service does with one request, as data.

    Wait(0.4), Wait(1.2, tokens=60), Headers(200, …), Chunk(b"…")

A service writes the plan when the request is there; a *door* plays it: the wall door over a socket, another one in
virtual time. Waits add up from the start of service (the instant the request was received or, when it had to wait for
one of the model's slots, the instant it got one), so the time that a door needs for its own work is part of the next
wait and does not shift what follows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol
from urllib.parse import unquote

from docmind_lab.core.randomness import DrawKey
from docmind_lab.core.server_behaviour import Phase
from docmind_lab.network.attempts import HEADER_PREFIX

ServiceKind = Literal["llm", "retrieval", "peer", "tool"]

SIGN_OF_LIFE: Final = b": keep-alive\n\n"
"""A comment of an event stream, which is no event."""
SIGN_OF_LIFE_GAP_S: Final = 0.3
"""Seconds between two signs of life: as a trickle's gap, below any per-read timeout in use."""

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,30}")


@dataclass(frozen=True)
class Wait:
    """Wait for `seconds` (inf: for ever) and generate `tokens` tokens evenly meanwhile.

    Token i of n is there after seconds × i / n: that is how the simulated model works, not an estimate.
    sign_of_life: bytes that go out each `SIGN_OF_LIFE_GAP_S` of it, which are no token; empty for none.
    """

    seconds: float
    tokens: int = 0
    sign_of_life: bytes = b""

    def tokens_by(self, elapsed_s: float) -> int:
        """Return how many tokens are generated within `elapsed_s` of the wait."""
        if self.tokens == 0 or math.isinf(self.seconds):
            return 0
        if elapsed_s >= self.seconds:
            return self.tokens
        return int(self.tokens * max(0.0, elapsed_s) / self.seconds)


@dataclass(frozen=True)
class Headers:
    """Send the status line and the headers."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Chunk:
    """Send bytes of the body."""

    data: bytes


@dataclass(frozen=True)
class Disconnect:
    """Close the connection, even in the middle of a reply."""


Step = Wait | Headers | Chunk | Disconnect


@dataclass(frozen=True)
class Plan:
    """The steps for one request, and what the log row says about it.

    output_tokens: when played to the end. takes_slot: whether the model works on it, so that it needs one of the
    server's slots and waits for it; a refusal does not. slowdown: what each other call under way when it starts adds to
    the time of its tokens, as a share of it. paces: when it is slower, whatever else is under way. made_up: what is
    answered without anything behind it, in words; empty where the answer is the service's own.
    """

    steps: tuple[Step, ...]
    kind: ServiceKind
    input_tokens: int = 0
    output_tokens: int = 0
    fault: str = ""
    takes_slot: bool = False
    slowdown: float = 0.0
    paces: tuple[Pace, ...] = ()
    made_up: str = ""

    def fault_at(self, since_s: float) -> str:
        """Return the kind of the fault that strikes it if its work begins then: its own, or a brownout."""
        return self.fault or ("brownout" if self._in_force(since_s) else "")

    def _in_force(self, since_s: float) -> list[Pace]:
        return [each for each in self.paces if each.begins_s <= since_s < each.ends_s]

    def steps_beside(self, others: int, since_s: float = 0.0) -> tuple[Step, ...]:
        """Return the steps as played. since_s: from the services' first request until its work begins."""
        pace = math.prod(each.factor for each in self._in_force(since_s))
        factor = 1 + self.slowdown * others
        if pace == 1 and factor == 1:
            return self.steps
        return tuple(
            replace(step, seconds=step.seconds * pace * (factor if step.tokens else 1.0))
            if isinstance(step, Wait)
            else step
            for step in self.steps
        )

    @property
    def streams(self) -> bool:
        """Whether its answer begins before all of its tokens are there."""
        first = next((place for place, step in enumerate(self.steps) if isinstance(step, Headers)), len(self.steps))
        return any(isinstance(step, Wait) and step.tokens for step in self.steps[first:])

    def phase(self, *, has_begun: bool, is_generating: bool) -> Phase | None:
        """Where a model call is, or None. has_begun: it has a slot. is_generating: its prompt has been read."""
        if self.kind != "llm" or not self.takes_slot:
            return None
        if not has_begun:
            return "queue"
        if self.streams:
            return "mid_stream" if is_generating else "before_first_token"
        return "generation" if is_generating else "prefill"

    @property
    def duration_s(self) -> float:
        """Seconds that the plan takes if played to the end; inf for a hang."""
        return math.fsum(step.seconds for step in self.steps if isinstance(step, Wait))


@dataclass(frozen=True)
class Pace:
    """A time, in seconds since the services' first request: work that begins in it takes `factor` times as long."""

    factor: float
    begins_s: float
    ends_s: float


@dataclass(frozen=True)
class ServiceRequest:
    """One request as a service receives it. headers: lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    query: str = ""

    def tag(self, name: str) -> str:
        """Return a tag that the client set on its call, from the lab's request headers; empty if not set."""
        return unquote(self.headers.get(HEADER_PREFIX + name, ""))

    def number(self, name: str, default: int) -> int:
        """Return a tag as a whole number; `default` if it is missing or not a whole number."""
        text = self.tag(name)
        return int(text) if _WHOLE_NUMBER.fullmatch(text) else default

    @property
    def node_request(self) -> int:
        """The number of the request among those of its node in a user's graph; 0 for a request of no such graph."""
        return self.number("request", 0)

    def draw_key(self, default_role: str, default_step: str, default_seed: int) -> DrawKey:
        """Return the key that the request's latency and faults are drawn from, with defaults for missing tags."""
        return DrawKey(
            seed=self.number("seed", default_seed),
            role=self.tag("role") or default_role,
            step=self.tag("step") or default_step,
            attempt=self.number("attempt", 1),
        )

    def json(self) -> Any:
        """Parse the body as JSON. Raises: ValueError if it is not JSON, or nested too deeply."""
        try:
            return json.loads(self.body or b"null")
        except RecursionError as error:
            raise ValueError("it is nested too deeply") from error


ODD_REQUEST: Final = (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What reading a request raises whose parts are not of the kinds that are expected. The services read nothing else."""


class Service(Protocol):
    """A service that answers requests with plans."""

    def plan(self, request: ServiceRequest) -> Plan:
        """Return the plan for a request; the same request gets the same plan."""
        ...


def json_steps(status: int, payload: Any, headers: tuple[tuple[str, str], ...] = ()) -> tuple[Step, ...]:
    """Return the headers and body of a JSON reply."""
    body = json.dumps(payload, separators=(",", ":")).encode()
    fixed = (("content-type", "application/json"), ("content-length", str(len(body))))
    return (Headers(status, fixed + headers), Chunk(body))


# An orphan of a run that is over must not go on, nor try again: the openai client obeys the header.
RUN_IS_OVER = json_steps(
    503,
    {"error": {"message": "The run is over.", "type": "run_over", "param": None, "code": "run_over"}},
    (("x-should-retry", "false"),),
)
"""The reply to a request of a run that is over."""
