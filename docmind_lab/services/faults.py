"""Faults: what can go wrong in a simulated model, as a change to a plan.

A fault is written "kind", "kind:role" or "kind:role:probability": `hang`, `trickle:validation`, `stall:*:0.2`.
Without a role it strikes synthesis, the longest call, so that a run gets far enough for its deadline to matter;
"*" strikes every role. Whether it strikes is drawn from the call's key, so every alternative meets the same faults.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Literal, cast, get_args

from docmind_lab.errors import ConfigurationError
from docmind_lab.randomness import DrawKey
from docmind_lab.services.plan import Chunk, Headers, Plan, Step, Wait

FaultKind = Literal["none", "hang", "trickle", "stall"]
FAULT_KINDS: tuple[str, ...] = get_args(FaultKind)

DEFAULT_ROLE = "synthesis"
TRICKLE_GAP_S = 0.3  # below any per-read timeout in use, which is what makes a trickle defeat one
TRICKLE_PIECES = 12
STALL_S = 3.0


@dataclass(frozen=True)
class Fault:
    """One fault. role: who is struck, "*" for all. probability: of striking a call.

    hang: no byte ever comes. trickle: the body comes in 12 pieces, 0.3 s apart. stall: 3 s of silence first.
    """

    kind: FaultKind = "none"
    role: str = DEFAULT_ROLE
    probability: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in FAULT_KINDS:
            near = difflib.get_close_matches(self.kind, FAULT_KINDS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigurationError(f"unknown fault {self.kind!r}; {hint}the faults are {', '.join(FAULT_KINDS)}")
        if not 0 <= self.probability <= 1:
            raise ConfigurationError(f"fault probability must be between 0 and 1, not {self.probability!r}")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """The fault written as in the module's docstring. Raises: ConfigurationError naming the part that is wrong."""
        parts = text.strip().split(":")
        if len(parts) > 3:
            raise ConfigurationError(f"fault {text!r} has too many parts; write kind:role:probability")
        kind, role, probability = [*parts, "", ""][:3]
        try:
            chance = float(probability) if probability else 1.0
        except ValueError as error:
            raise ConfigurationError(f"fault {text!r}: probability {probability!r} is not a number") from error
        return cls(kind=cast("FaultKind", kind), role=role or DEFAULT_ROLE, probability=chance)

    def __str__(self) -> str:
        if self.kind == "none":
            return "none"
        chance = "" if self.probability == 1 else f":{self.probability!r}"
        return f"{self.kind}:{self.role}{chance}"

    def strikes(self, key: DrawKey) -> bool:
        """Whether the call with this key is struck."""
        if self.kind == "none" or self.role not in ("*", key.role):
            return False
        return key.uniform(f"fault/{self.kind}") < self.probability

    def applied(self, plan: Plan, key: DrawKey) -> Plan:
        """The plan as it goes under the fault; unchanged if the fault does not strike."""
        if not self.strikes(key):
            return plan
        steps = {"hang": _hang, "trickle": _trickle, "stall": _stall}[self.kind](plan.steps)
        tokens = 0 if self.kind == "hang" else plan.output_tokens
        return Plan(steps, plan.kind, plan.input_tokens, tokens, fault=self.kind)


def _hang(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return (Wait(math.inf),)


def _stall(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return (Wait(STALL_S), *steps)


def _trickle(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The same latency up to the headers, then the body in small pieces."""
    body = b"".join(step.data for step in steps if isinstance(step, Chunk))
    size = max(1, math.ceil(len(body) / TRICKLE_PIECES))
    trickled: list[Step] = [step for step in steps if isinstance(step, Wait | Headers)]
    # Headers go out only once: an event stream interleaves waits and chunks, a JSON reply does not.
    trickled.sort(key=lambda step: isinstance(step, Headers))
    for start in range(0, len(body), size):
        trickled += [Wait(TRICKLE_GAP_S), Chunk(body[start : start + size])]
    return tuple(trickled)
