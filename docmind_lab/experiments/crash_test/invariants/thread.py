"""What becomes of the thread: a provider takes its conversation, and its resumption reaches the answer."""

from __future__ import annotations

from docmind_lab.experiments.crash_test.invariants.verdict import Reference, Verdict
from docmind_lab.experiments.crash_test.journal import ASKED, RESUMED
from docmind_lab.experiments.crash_test.observation import Observation, Saved

_LONGEST = 200
_WHEN = {RESUMED: "when the run is resumed", ASKED: "when the user goes on"}


def judge_conversation(observation: Observation, reference: Reference) -> Verdict:
    """Judge that a provider takes the conversation, of the resumed run and of the user's next message."""
    if observation.saved.error:
        return Verdict("conversation", "not judged")
    undisturbed = reference.undisturbed
    for part, words in observation.refusals:
        if part in _WHEN and not any(known == part for known, _ in undisturbed.refusals):
            return Verdict("conversation", "broken", f"a provider refuses the conversation {_WHEN[part]}", words)
    asked = observation.asked
    usual = undisturbed.asked
    if asked is not None and usual is not None and usual.outcome != "failed" and asked.outcome == "failed":
        return Verdict("conversation", "broken", "the user's next message fails", asked.error)
    if asked is None and observation.resumed is None:
        return Verdict("conversation", "not judged")
    return Verdict("conversation", "holds")


def judge_resume(observation: Observation, reference: Reference) -> Verdict:
    """Judge that the thread can be resumed, and that this ends as the undisturbed run does."""
    usual, saved = reference.undisturbed, observation.saved
    if saved.error or any(part == RESUMED for part, _ in observation.refusals):
        return Verdict("resume", "not judged")
    if observation.first.outcome == "answered":
        return Verdict("resume", "holds")
    if saved.interrupts:
        # Its answers belong to the first run, and how many it has had is not known.
        return Verdict("resume", "not judged")
    resumed = observation.resumed
    if resumed is not None and resumed.outcome != usual.first.outcome:
        what = (
            "the resumed run has no end" if resumed.outcome == "no end" else f"the resumed run ends {resumed.outcome}"
        )
        return Verdict("resume", "broken", what, resumed.error)
    reached, wanted = _answer(observation.last, reference), _answer(usual.saved, reference)
    if reached == wanted:
        return Verdict("resume", "holds")
    return Verdict("resume", "broken", "the resumed run reaches another answer", _difference(reached, wanted))


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
