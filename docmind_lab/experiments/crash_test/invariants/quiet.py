"""Nothing begins after the caller was told, and nothing of the run remains."""

from __future__ import annotations

from collections import Counter

from docmind_lab.experiments.crash_test.invariants.verdict import SAME_S, Reference, Verdict, status_of
from docmind_lab.experiments.crash_test.journal import BEGINNINGS, Mark
from docmind_lab.experiments.crash_test.observation import Observation

_WRITES = frozenset({"checkpoint", "pending write", "store write"})


def begun_after(observation: Observation, kinds: frozenset[str]) -> list[Mark]:
    """Return what began in the cut run after its caller was told."""
    told_at_s = observation.first.told_at_s
    if told_at_s is None:
        return []
    return [
        mark
        for mark in observation.of()
        if mark.kind in kinds and mark.edge != "ends" and mark.at_s > told_at_s + SAME_S
    ]


def judge_begins(observation: Observation, reference: Reference) -> Verdict:
    """Judge that nothing begins after the caller was told."""
    if observation.trial.is_kill:
        return Verdict("begins", "not judged")
    if observation.first.outcome == "no end":
        return Verdict(
            "begins",
            status_of(observation, "node"),
            "the caller is never told",
            "the run had not returned an hour later",
        )
    late = begun_after(observation, BEGINNINGS - _WRITES)
    known = Counter((mark.kind, mark.what) for mark in begun_after(reference.undisturbed, BEGINNINGS - _WRITES))
    # What is promised first, so that nothing that is left hides it.
    for mark in sorted(late, key=lambda mark: status_of(observation, mark.kind) != "broken"):
        known[mark.kind, mark.what] -= 1
        if known[mark.kind, mark.what] < 0:
            status = status_of(observation, mark.kind)
            after_s = mark.at_s - (observation.first.told_at_s or 0.0)
            what = f"{mark.kind} {mark.what} begins after the caller was told"
            more = f", and {len(late) - 1} more" if len(late) > 1 else ""
            return Verdict("begins", status, what, f"{after_s:.3f} s after the caller was told{more}", mark.at_s)
    return Verdict("begins", "holds")


def judge_leftovers(observation: Observation, reference: Reference) -> Verdict:
    """Judge that nothing of the run remains that an undisturbed run does not leave too."""
    if observation.trial.is_kill:
        return Verdict("leftovers", "not judged")
    found = Counter((each.kind, each.name) for each in observation.leftovers) - reference.leftovers
    if not found:
        return Verdict("leftovers", "holds")
    kind, name = next(iter(found))
    status = status_of(observation, kind)
    example = next(each for each in observation.leftovers if (each.kind, each.name) == (kind, name))
    more = f", and {found.total() - 1} more" if found.total() > 1 else ""
    return Verdict("leftovers", status, f"{kind} {name} remains", f"30 s later there is still the {example}{more}")


def judge_checkpoint(observation: Observation, reference: Reference) -> Verdict:
    """Judge that the thread can be read, holds the answer that the caller has, and is not written any more."""
    saved = observation.saved
    if saved.error:
        return Verdict("checkpoint", "broken", "the thread cannot be read", saved.error)
    first = observation.first
    held = (saved.values or {}).get("messages")
    if first.outcome == "answered" and held is not None and first.answer and first.answer != held:
        return Verdict(
            "checkpoint", "broken", "the thread has not the answer that the caller was told", f"it has {held!r}"
        )
    if observation.trial.is_kill:
        return Verdict("checkpoint", "holds")
    late = begun_after(observation, _WRITES)
    if late and not begun_after(reference.undisturbed, _WRITES):
        status = status_of(observation, late[0].kind)
        after_s = late[0].at_s - (first.told_at_s or 0.0)
        what = f"{late[0].kind} {late[0].what} after the caller was told"
        return Verdict("checkpoint", status, what, f"{after_s:.3f} s after the caller was told", late[0].at_s)
    return Verdict("checkpoint", "holds")
