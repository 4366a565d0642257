"""A verdict on one invariant in one trial, and what it is judged by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from docmind_lab.experiments.crash_test.journal import FIRST
from docmind_lab.experiments.crash_test.observation import Observation

Status = Literal["holds", "broken", "left", "not judged"]

INVARIANTS: Final = {
    "begins": "nothing begins after the caller was told",
    "conversation": "a provider takes the conversation that was saved",
    "resume": "the thread can be resumed, to the answer of an undisturbed run",
    "effects": "no side effect is done twice, and none is lost",
    "checkpoint": "the thread can be read, holds what the caller was told, and is not written any more",
    "leftovers": "no thread, task, request, temporary file or lock remains",
}
"""Invariant → what it says."""

# Instants are sums of floats; two that differ by less are one.
SAME_S: Final = 1e-9


@dataclass(frozen=True)
class Verdict:
    """Whether one invariant holds in one trial.

    status: "broken", "holds", "left" (it does not hold, and the alternative promises nothing of the kind) or "not
    judged". what: what is wrong, in words that are the same for the same defect; empty if nothing is. evidence: what
    this trial showed of it. at_s: instant at which it shows; None if it has none.
    """

    invariant: str
    status: Status
    what: str = ""
    evidence: str = ""
    at_s: float | None = None


@dataclass(frozen=True)
class Reference:
    """What a trial is held against.

    undisturbed: the same run, not cut. volatile: keys of the state that depend on time or chance, which are not
    compared.
    """

    undisturbed: Observation
    volatile: frozenset[str] = frozenset()

    @property
    def effects(self) -> Counter[str]:
        """How often each side effect takes place in an undisturbed run."""
        return effects_of(self.undisturbed, (FIRST,))

    @property
    def leftovers(self) -> Counter[tuple[str, str]]:
        """What an undisturbed run leaves too."""
        return Counter((each.kind, each.name) for each in self.undisturbed.leftovers)


def effects_of(observation: Observation, parts: tuple[str, ...]) -> Counter[str]:
    """Count the side effects by what they are; those with one idempotency key count once."""
    counted: Counter[str] = Counter()
    known = set[tuple[str, str]]()
    for effect in observation.effects:
        if effect.part not in parts or (effect.key and (effect.what, effect.key) in known):
            continue
        known.add((effect.what, effect.key))
        counted[effect.what] += 1
    return counted


def status_of(observation: Observation, kind: str) -> Status:
    """Return the status of something that goes on after the caller was told, by what the alternative promises.

    kind: what goes on, such as "node" or "thread".
    """
    is_promised = observation.promise == "quiet" or (observation.promise == "steps" and kind == "node")
    return "broken" if is_promised else "left"
