"""The invariants that every trial is held to, one verdict each.

verdict.py       a verdict, what it is judged by, what an alternative promises
quiet.py         nothing begins, is written or remains after the caller was told
thread.py        the saved conversation, and the resumed run
side_effects.py  side effects done twice or lost
"""

from docmind_lab.experiments.crash_test.invariants.quiet import judge_begins, judge_checkpoint, judge_leftovers
from docmind_lab.experiments.crash_test.invariants.side_effects import judge_effects
from docmind_lab.experiments.crash_test.invariants.thread import judge_conversation, judge_resume
from docmind_lab.experiments.crash_test.invariants.verdict import INVARIANTS, Reference, Verdict
from docmind_lab.experiments.crash_test.observation import Observation

__all__ = ["INVARIANTS", "Reference", "Verdict", "judge"]

_JUDGES = (judge_begins, judge_conversation, judge_resume, judge_effects, judge_checkpoint, judge_leftovers)


def judge(observation: Observation, reference: Reference) -> tuple[Verdict, ...]:
    """Return the verdict on each invariant in one trial."""
    if observation.not_judged:
        return tuple(Verdict(name, "not judged", evidence=observation.not_judged) for name in INVARIANTS)
    return tuple(judge_one(observation, reference) for judge_one in _JUDGES)
