"""What one trial shows: everything that happened in it, how its runs ended, its thread, its leftovers.

Everything that a trial watches writes into its journal: the checkpointer, the store, the services, the callbacks. After
a kill, nothing more is written and nothing reaches a store.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import RunCut, SimulationError
from docmind_lab.experiments.examination import Trial
from docmind_lab.virtual_time import VirtualClock

Edge = Literal["begins", "ends", ""]
Promise = Literal["quiet", "steps", "none"]

BEGINNINGS: Final = frozenset({"node", "tool", "request", "effect", "checkpoint", "pending write", "store write"})
"""What must not begin once the caller was told, under an alternative that promises so."""

FIRST, RESUMED, ASKED = "first", "resumed", "asked"
"""The parts of a trial: the run that is cut, its resumption, and the user's next message in a copy of the thread."""

# What a step of a graph costs, so that what happens "at once" still happens one after the other.
_STEP_S: Final = 0.000_2
WRITE_S: Final = 0.002
"""Virtual seconds that one write to a checkpointer or a store takes; it is there half way."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Ids of tool calls, which a simulated model derives from where in the run it is asked.
_CALL_ID = re.compile(r"\b(call|toolu|fc)_[0-9a-f]{16}_\d+")


# ---- what happens


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

    at_s: seconds from the beginning of the trial. what: the service or the tool, such as "POST pay.example.com/x". key:
    its idempotency key; empty for none. One key is one effect, however often it is asked for.
    """

    at_s: float
    what: str
    key: str = ""
    part: str = FIRST


class Killed(RunCut):
    """The process was killed: code that goes on while its thread is unwound gets this at every door."""


@dataclass
class Journal:
    """What happened in a trial. clock: of the trial. dead_from_s: nothing is written from then on.

    refusals: (part, the provider's words) of each conversation that a provider would refuse. conversed: the parts in
    which a model was asked. calls_cut: the tools of which a model was told that their calls were cut.
    """

    clock: VirtualClock
    dead_from_s: float = math.inf
    part: str = FIRST
    marks: list[Mark] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    conversed: set[str] = field(default_factory=set)
    calls_cut: list[str] = field(default_factory=list)

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
            self.clock.charge(_STEP_S)


# ---- what becomes of it


@dataclass(frozen=True)
class Ending:
    """How one part of a trial ended.

    outcome: as an alternative says it; "killed", or "no end" for one that was still under way at its horizon. error:
    type and first line of the exception that ended it; empty for none. told_at_s: instant at which its caller had the
    outcome; None without one.
    """

    outcome: str
    error: str = ""
    answer: str = ""
    told_at_s: float | None = None

    def __str__(self) -> str:
        return f"{self.outcome} ({self.error})" if self.error else self.outcome


@dataclass(frozen=True)
class Saved:
    """A thread as its checkpointer has it.

    pending: nodes that are to run next. values: key of the state → its value in a form that can be compared. error: why
    it cannot be read; empty if it can. interrupts: how many wait for an answer. calls_cut: the tools whose results say
    that they were cut.
    """

    is_there: bool = False
    pending: tuple[str, ...] = ()
    values: Mapping[str, str] | None = None
    error: str = ""
    interrupts: int = 0
    calls_cut: tuple[str, ...] = ()


@dataclass(frozen=True)
class Leftover:
    """Something of the run that was still there when everything had come to rest. name: compares runs."""

    kind: str
    name: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}" + (f", at {self.where}" if self.where and self.where != self.name else "")


@dataclass(frozen=True)
class Observation:
    """What a trial showed.

    first: how the run ended that was cut. saved: the thread when that run had come to rest. resumed: how its resumption
    ended; None if there was nothing to resume. completed: the thread after that. asked: how the user's next message
    ended, in a copy of the thread; None if there was no conversation. marks: in the order of time. refusals: (part,
    words) of each conversation that a provider would refuse. conversed: the parts in which a model was asked. promise:
    what the alternative promises once the caller was told: that nothing goes on ("quiet"), that no further step begins
    ("steps"), or nothing ("none"). not_judged: why the trial cannot be judged; empty if it can.
    """

    trial: Trial
    first: Ending = Ending("no end")
    saved: Saved = Saved()
    resumed: Ending | None = None
    completed: Saved | None = None
    asked: Ending | None = None
    marks: tuple[Mark, ...] = ()
    effects: tuple[Effect, ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    conversed: frozenset[str] = frozenset()
    leftovers: tuple[Leftover, ...] = ()
    promise: Promise = "quiet"
    not_judged: str = ""

    @property
    def told_at_s(self) -> float | None:
        """When the caller of the cut run was told, or its process killed."""
        return self.trial.decision_timeout_s if self.trial.is_kill else self.first.told_at_s

    def of(self, part: str = FIRST) -> list[Mark]:
        """Return the marks of one part."""
        return [mark for mark in self.marks if mark.part == part]

    @property
    def last(self) -> Saved:
        """The thread when everything was over."""
        return self.saved if self.completed is None else self.completed


# ---- states that are compared


def comparable(values: Any) -> dict[str, str]:
    """Return each key of a state with its value in a form that is the same for equal content.

    Ids of messages are left out, and so is the deadline. A conversation counts by its latest answer: what was said on
    the way to it may differ.
    """
    if not isinstance(values, Mapping):
        return {"value": text_of(values)}
    made = {}
    for key, value in values.items():
        if key == DEADLINE_KEY or str(key).startswith("__"):
            continue
        is_conversation = isinstance(value, list) and value and all(isinstance(one, BaseMessage) for one in value)
        made[str(key)] = _latest_answer(value) if is_conversation else text_of(value)
    return made


def answer_in(values: Mapping[str, str]) -> str:
    """Return the answer in a comparable state: that of its messages, or all of it where it has none."""
    return values["messages"] if "messages" in values else json.dumps(dict(values), sort_keys=True)


def _latest_answer(messages: Sequence[BaseMessage]) -> str:
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return ""
        if isinstance(message, AIMessage) and not message.tool_calls and message.text:
            return _CALL_ID.sub(r"\1", message.text)
    return ""


def text_of(value: Any) -> str:
    """Return a text that is the same for equal content, ids of messages and of tool calls aside."""
    return _CALL_ID.sub(r"\1", json.dumps(_plain(value), sort_keys=True, default=str))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return [value.type, value.text, [[call["name"], call["args"]] for call in getattr(value, "tool_calls", ())]]
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(item), sort_keys=True, default=str) for item in value)
    if isinstance(value, str | int | float | bool | None):
        return value
    return _ADDRESS.sub("", repr(value))
