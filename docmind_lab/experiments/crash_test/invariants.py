"""The invariants that every trial is held to, one judgement each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

from docmind_lab.core.text import count_of
from docmind_lab.experiments.crash_test.observation import (
    ASKED,
    BEGINNINGS,
    FIRST,
    RESUMED,
    Mark,
    Observation,
    Saved,
)

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
_SAME_S: Final = 1e-9
_WRITES = frozenset({"checkpoint", "pending write", "store write"})
_LONGEST = 200
_WHEN = {RESUMED: "when the run is resumed", ASKED: "when the user goes on"}


@dataclass(frozen=True)
class Judgement:
    """Whether one invariant holds in one trial.

    status: "left" if it does not hold, and the alternative promises nothing of the kind. what: what is wrong, in words
    that are the same for the same defect; empty if nothing is. evidence: what this trial showed of it. at_s: instant at
    which it shows; None if it has none.
    """

    invariant: str
    status: Status
    what: str = ""
    evidence: str = ""
    at_s: float | None = None


@dataclass(frozen=True)
class Reference:
    """What a trial is held against: the same run undisturbed, and the keys of the state that are `volatile`.

    Those depend on time or chance, and are not compared.
    """

    undisturbed: Observation
    volatile: frozenset[str] = frozenset()

    @property
    def effects(self) -> Counter[str]:
        """How often each side effect takes place in an undisturbed run."""
        return _effects_of(self.undisturbed, (FIRST,))


def judge(observation: Observation, reference: Reference) -> tuple[Judgement, ...]:
    """Return the judgement on each invariant in one trial."""
    if observation.not_judged:
        return tuple(Judgement(name, "not judged", evidence=observation.not_judged) for name in INVARIANTS)
    judges = (
        *(_judge_begins, _judge_conversation, _judge_resume),
        *(_judge_effects, _judge_checkpoint, _judge_leftovers),
    )
    return tuple(judge_one(observation, reference) for judge_one in judges)


def _status_of(observation: Observation, kind: str) -> Status:
    """Return the status of what goes on after the caller was told, such as a node, by what the alternative promises."""
    is_promised = observation.promise == "quiet" or (observation.promise == "steps" and kind == "node")
    return "broken" if is_promised else "left"


# ---- nothing begins after the caller was told, and nothing of the run remains


def _begun_after(observation: Observation, kinds: frozenset[str]) -> list[Mark]:
    """Return what began in the cut run after its caller was told."""
    told_at_s = observation.first.told_at_s
    if told_at_s is None:
        return []
    return [
        mark
        for mark in observation.of()
        if mark.kind in kinds and mark.edge != "ends" and mark.at_s > told_at_s + _SAME_S
    ]


def _judge_begins(observation: Observation, reference: Reference) -> Judgement:
    if observation.trial.is_kill:
        return Judgement("begins", "not judged")
    if observation.first.outcome == "no end":
        status = _status_of(observation, "node")
        return Judgement("begins", status, "the caller is never told", "the run had not returned an hour later")
    late = _begun_after(observation, BEGINNINGS - _WRITES)
    usual = Counter((mark.kind, mark.what) for mark in _begun_after(reference.undisturbed, BEGINNINGS - _WRITES))
    # What is promised first, so that nothing that is left hides it.
    for mark in sorted(late, key=lambda mark: _status_of(observation, mark.kind) != "broken"):
        usual[mark.kind, mark.what] -= 1
        if usual[mark.kind, mark.what] < 0:
            status = _status_of(observation, mark.kind)
            after_s = mark.at_s - (observation.first.told_at_s or 0.0)
            what = f"{mark.kind} {mark.what} begins after the caller was told"
            more = f", and {len(late) - 1} more" if len(late) > 1 else ""
            return Judgement("begins", status, what, f"{after_s:.3f} s after the caller was told{more}", mark.at_s)
    return Judgement("begins", "holds")


def _judge_leftovers(observation: Observation, reference: Reference) -> Judgement:
    """Judge that nothing of the run remains that an undisturbed run does not leave too."""
    if observation.trial.is_kill:
        return Judgement("leftovers", "not judged")
    usual = Counter((each.kind, each.name) for each in reference.undisturbed.leftovers)
    beyond = Counter((each.kind, each.name) for each in observation.leftovers) - usual
    if not beyond:
        return Judgement("leftovers", "holds")
    kind, name = next(iter(beyond))
    example = next(each for each in observation.leftovers if (each.kind, each.name) == (kind, name))
    more = f", and {beyond.total() - 1} more" if beyond.total() > 1 else ""
    evidence = f"30 s later there is still the {example}{more}"
    return Judgement("leftovers", _status_of(observation, kind), f"{kind} {name} remains", evidence)


# ---- the thread


def _judge_checkpoint(observation: Observation, reference: Reference) -> Judgement:
    """Judge that the thread can be read, holds the answer that the caller has, and is not written any more."""
    first, saved = observation.first, observation.saved
    if saved.error:
        return Judgement("checkpoint", "broken", "the thread cannot be read", saved.error)
    held = (saved.values or {}).get("messages")
    if first.outcome == "answered" and held is not None and first.answer and first.answer != held:
        what = "the thread has not the answer that the caller was told"
        return Judgement("checkpoint", "broken", what, f"it has {held!r}")
    late = [] if observation.trial.is_kill else _begun_after(observation, _WRITES)
    if not late or _begun_after(reference.undisturbed, _WRITES):
        return Judgement("checkpoint", "holds")
    what = f"{late[0].kind} {late[0].what} after the caller was told"
    evidence = f"{late[0].at_s - (first.told_at_s or 0.0):.3f} s after the caller was told"
    return Judgement("checkpoint", _status_of(observation, late[0].kind), what, evidence, late[0].at_s)


def _judge_conversation(observation: Observation, reference: Reference) -> Judgement:
    """Judge that a provider takes the conversation, of the resumed run and of the user's next message."""
    if observation.saved.error:
        return Judgement("conversation", "not judged")
    undisturbed = reference.undisturbed
    for part, words in observation.refusals:
        if part in _WHEN and not any(refused_part == part for refused_part, _ in undisturbed.refusals):
            return Judgement("conversation", "broken", f"a provider refuses the conversation {_WHEN[part]}", words)
    asked, usual = observation.asked, undisturbed.asked
    if asked is not None and usual is not None and usual.outcome != "failed" and asked.outcome == "failed":
        return Judgement("conversation", "broken", "the user's next message fails", asked.error)
    is_judged = asked is not None or RESUMED in observation.conversed
    return Judgement("conversation", "holds" if is_judged else "not judged")


def _judge_resume(observation: Observation, reference: Reference) -> Judgement:
    """Judge that the thread can be resumed, and that this ends as the undisturbed run does."""
    usual, saved, resumed = reference.undisturbed, observation.saved, observation.resumed
    if saved.error or any(part == RESUMED for part, _ in observation.refusals):
        return Judgement("resume", "not judged")
    if observation.first.outcome == "answered":
        return Judgement("resume", "holds")
    if saved.interrupts:
        # It waits for a person.
        return Judgement("resume", "not judged")
    if resumed is not None and resumed.outcome != usual.first.outcome:
        has_no_end = resumed.outcome == "no end"
        what = "the resumed run has no end" if has_no_end else f"the resumed run ends {resumed.outcome}"
        return Judgement("resume", "broken", what, resumed.error)
    if observation.last.calls_cut:
        # What the model makes of calls that were cut is its own.
        return Judgement("resume", "holds")
    reached, wanted = _answer(observation.last, reference), _answer(usual.saved, reference)
    if reached == wanted:
        return Judgement("resume", "holds")
    return Judgement("resume", "broken", "the resumed run reaches another answer", _difference(reached, wanted))


def _answer(saved: Saved, reference: Reference) -> dict[str, str]:
    """Return what is compared of a thread: its latest answer and structured response, or all of it without one."""
    values = saved.values or {}
    usual = reference.undisturbed.saved.values or {}
    keys = ("messages", "structured_response") if usual.get("messages") else tuple(usual)
    return {key: values.get(key, "") for key in keys if key in usual and key not in reference.volatile}


def _difference(reached: dict[str, str], wanted: dict[str, str]) -> str:
    key = next(key for key in wanted if reached.get(key) != wanted[key])
    return f"{key}: {_shown(reached.get(key, ''))} where an undisturbed run has {_shown(wanted[key])}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


# ---- side effects


def _effects_of(observation: Observation, parts: tuple[str, ...]) -> Counter[str]:
    """Count the side effects by what they are; those with one idempotency key count once."""
    mine = [effect for effect in observation.effects if effect.part in parts]
    once = dict.fromkeys((effect.what, effect.key or number) for number, effect in enumerate(mine))
    return Counter(what for what, _ in once)


def _judge_effects(observation: Observation, reference: Reference) -> Judgement:
    """Judge the side effects of the cut run and of its resumption together, against those of an undisturbed run."""
    usual, done = reference.effects, _effects_of(observation, (FIRST, RESUMED))
    for what, count in done.items():
        # An id in a path makes each request another one; so the host as a whole must have had too many as well.
        if count > usual[what] and _of_place(done, what) > _of_place(usual, what):
            at_s = [effect.at_s for effect in observation.effects if effect.what == what][-1]
            usually = count_of(usual[what], "time")
            if not usual[what]:
                evidence = f"{count_of(count, 'time')}; an undisturbed run does it {usually}"
                return Judgement(
                    "effects", "broken", f"{what} is done, and never in an undisturbed run", evidence, at_s
                )
            times = "twice" if count == 2 else f"{count} times"
            evidence = f"{count} times without a common idempotency key; an undisturbed run does it {usually}"
            return Judgement("effects", "broken", f"{what} is done {times}", evidence, at_s)
    ended = observation.resumed or observation.first
    # A thread whose calls were cut says so of them.
    if ended.outcome == "answered" and not observation.saved.error and not observation.last.calls_cut:
        for what, count in usual.items():
            if done[what] < count and _of_place(done, what) < _of_place(usual, what):
                claim = f"{done[what]} times, and the run says that it is done"
                evidence = f"{claim}; an undisturbed run does it {count} times"
                return Judgement("effects", "broken", f"{what} is lost", evidence)
    return Judgement("effects", "holds")


def _of_place(effects: dict[str, int], what: str) -> int:
    place = what.partition("/")[0]
    return sum(count for name, count in effects.items() if name.partition("/")[0] == place)
