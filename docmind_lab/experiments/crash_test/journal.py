"""The journal of one trial: what began and ended, at which instant, and whether the run still lives.

Everything that a trial watches writes here: the checkpointer, the store, the services, the callbacks. After a kill,
nothing more is written and nothing reaches a store.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, Literal

from docmind_lab.core.errors import RunCut, SimulationError
from docmind_lab.virtual_time import VirtualClock

Edge = Literal["begins", "ends", ""]

KINDS: Final = (
    "node",
    "tool",
    "request",
    "first byte",
    "chunk",
    "checkpoint",
    "pending write",
    "store write",
    "effect",
    "wait",
)
"""The kinds of marks, which are the kinds of cut points."""

BEGINNINGS: Final = frozenset({"node", "tool", "request", "effect", "checkpoint", "pending write", "store write"})
"""What must not begin once the caller was told, under an alternative that promises so."""

FIRST, RESUMED, ASKED = "first", "resumed", "asked"
"""The parts of a trial: the run that is cut, its resumption, and the user's next message in a copy of the thread."""

# What a step of a graph costs, so that what happens "at once" still happens one after the other.
STEP_S: Final = 0.000_2
"""Virtual seconds that a node or a tool takes to begin, and to end."""
WRITE_S: Final = 0.002
"""Virtual seconds that one write to a checkpointer or a store takes; it is there half way."""


@dataclass(frozen=True)
class Mark:
    """Something that happened in a trial. at_s: seconds from its beginning. part: one of the parts of a trial."""

    at_s: float
    kind: str
    what: str
    edge: Edge = ""
    part: str = FIRST

    def __str__(self) -> str:
        return f"{self.kind} {self.what} {self.edge}".rstrip()


@dataclass(frozen=True)
class Effect:
    """A side effect that took place outside the graph.

    what: the service or the tool, such as "POST pay.example.com/charges". key: its idempotency key; empty for none. One
    key is one effect, however often it is asked for.
    """

    at_s: float
    what: str
    key: str = ""
    part: str = FIRST


class Killed(RunCut):
    """The process was killed: code that goes on while its thread is unwound gets this at every door."""


@dataclass
class Journal:
    """What happened in a trial. clock: of the trial. dead_from_s: nothing is written from then on."""

    clock: VirtualClock
    dead_from_s: float = math.inf
    part: str = FIRST
    marks: list[Mark] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """(part, the provider's words) of each conversation that a provider would refuse."""

    def mark(self, kind: str, what: str, edge: Edge = "", *, at_s: float | None = None) -> None:
        """Note that something happened, now if no instant is named."""
        if not self.is_dead:
            self.marks.append(Mark(self.clock.now() if at_s is None else at_s, kind, what, edge, self.part))

    def effect(self, what: str, key: str = "") -> None:
        """Note a side effect."""
        if not self.is_dead:
            self.mark("effect", what)
            self.effects.append(Effect(self.clock.now(), what, key, self.part))

    def refusal(self, words: str) -> None:
        """Note that a provider would refuse a conversation."""
        if not self.is_dead and (self.part, words) not in self.refusals:
            self.refusals.append((self.part, words))

    @property
    def is_dead(self) -> bool:
        """Whether the process of the part under way was killed."""
        return self.clock.now() >= self.dead_from_s

    def require_life(self) -> None:
        """Return if the process lives. Raises: Killed."""
        if self.is_dead:
            raise Killed(SimulationError("the process was killed"))

    def spend_step(self) -> None:
        """Let the time of one step pass."""
        if not self.is_dead:
            self.clock.charge(STEP_S)
