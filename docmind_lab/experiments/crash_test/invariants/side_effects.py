"""No side effect is done twice over a cut and its resumption, and none is lost."""

from __future__ import annotations

from docmind_lab.analysis.text import count_of
from docmind_lab.experiments.crash_test.invariants.verdict import Reference, Verdict, effects_of
from docmind_lab.experiments.crash_test.journal import FIRST, RESUMED
from docmind_lab.experiments.crash_test.observation import Observation


def judge_effects(observation: Observation, reference: Reference) -> Verdict:
    """Judge the side effects of the cut run and of its resumption together, against those of an undisturbed run."""
    usual, done = reference.effects, effects_of(observation, (FIRST, RESUMED))
    if not usual and not done:
        return Verdict("effects", "holds")
    for what, count in done.items():
        # An id in a path makes each request another one; so the host as a whole must have had too many as well.
        if count > usual[what] and _of_place(done, what) > _of_place(usual, what):
            at_s = [effect.at_s for effect in observation.effects if effect.what == what][-1]
            times = "twice" if count == 2 * max(1, usual[what]) else f"{count} times"
            usually = count_of(usual[what], "time")
            evidence = f"{count} times without a common idempotency key; an undisturbed run does it {usually}"
            return Verdict("effects", "broken", f"{what} is done {times}", evidence, at_s)
    ended = observation.resumed or observation.first
    if ended.outcome == "answered" and not observation.saved.error:
        for what, count in usual.items():
            if done[what] < count and _of_place(done, what) < _of_place(usual, what):
                evidence = (
                    f"{done[what]} times, and the run says that it is done; an undisturbed run does it {count} times"
                )
                return Verdict("effects", "broken", f"{what} is lost", evidence)
    return Verdict("effects", "holds")


def _of_place(effects: dict[str, int], what: str) -> int:
    place = what.partition("/")[0]
    return sum(count for name, count in effects.items() if name.partition("/")[0] == place)
