"""A finding: one invariant that does not hold, where it first shows, and how to repeat it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

from docmind_lab.experiments.crash_test.invariants import INVARIANTS, Verdict
from docmind_lab.experiments.crash_test.journal import FIRST, RESUMED
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.trials import Trial

_BEFORE, _AFTER = 6, 14


@dataclass(frozen=True)
class Finding:
    """One invariant that does not hold.

    alternatives: those under which it shows; "kill" for a process that is killed. trials: in how many trials it shows.
    trial: the smallest of them: its input, its instant, its schedule. timeline: that trial, a line for each thing that
    happened around its cut. is_left: whether the alternative promises nothing of the kind, so that it is no defect.
    """

    invariant: str
    what: str
    alternatives: tuple[str, ...]
    trials: int
    trial: Trial
    given: Mapping[str, Any]
    evidence: str
    timeline: tuple[str, ...]
    is_left: bool = False

    def pytest_function(self, graph: str, seed: int, options: Mapping[str, Any]) -> str:
        """Return a test that repeats the finding, and fails while it is there.

        options: further arguments of `cut_at`, by name.
        """
        name = re.sub(r"\W+", "_", f"{self.invariant}_{self.what}".lower()).strip("_")[:70].strip("_")
        trial = self.trial
        rest = "".join(f", {key}={value!r}" for key, value in options.items())
        return (
            "import pytest\n\n"
            "from docmind_lab.testing import cut_at\n\n\n"
            '@pytest.mark.parametrize(("alternative", "at_s", "seed", "schedule"), '
            f"[({trial.alternative!r}, {trial.decision_timeout_s!r}, {seed}, {trial.schedule})])\n"
            f"def test_{name}(alternative, at_s, seed, schedule):\n"
            f"    given = {plain_input(self.given)!r}\n"
            f"    cut_at({graph!r}, given, alternative, at_s, seed=seed, schedule=schedule{rest})\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON types."""
        trial = self.trial
        return {
            "invariant": self.invariant,
            "what": self.what,
            "alternatives": list(self.alternatives),
            "trials": self.trials,
            "input": plain_input(self.given),
            "alternative": trial.alternative,
            "at_s": trial.decision_timeout_s,
            "schedule": trial.schedule,
            "evidence": self.evidence,
            "timeline": list(self.timeline),
        }

    # As HTML, since a notebook breaks long lines of plain text in mid-word.
    def _repr_html_(self) -> str:
        lines = "\n".join(escape(line) for line in self.timeline)
        where = escape(", ".join(self.alternatives))
        return (
            f"<p><b>{escape(self.what)}</b> ({escape(INVARIANTS[self.invariant])}; {where})</p>"
            f"<p>{escape(self.evidence)}</p><pre>{lines}</pre>"
        )


def plain_input(given: Mapping[str, Any]) -> Any:
    """Return an input as JSON types, so that it can be written down and given again."""
    plain = {}
    for key, value in given.items():
        if isinstance(value, list) and any(isinstance(item, BaseMessage) for item in value):
            value = convert_to_openai_messages(value)
        try:
            json.dumps(value)
        except TypeError:
            value = repr(value)
        plain[key] = value
    return plain


def timeline_of(observation: Observation, verdict: Verdict) -> tuple[str, ...]:
    """Return what happened around the cut of a trial, and around what its verdict shows, in lines."""
    trial, told_at_s = observation.trial, observation.first.told_at_s
    assert trial.is_cut, "a run that is not cut breaks no invariant"
    lines = [(mark.at_s, 1, str(mark), mark.part) for mark in observation.marks if mark.kind != "wait"]
    lines.append((trial.decision_timeout_s, 0, "the process is killed" if trial.is_kill else "the deadline", FIRST))
    if told_at_s is not None and not trial.is_kill:
        lines.append((told_at_s, 2, f"the caller is told: {observation.first}", FIRST))
    if observation.resumed is not None:
        ended = observation.resumed.told_at_s
        lines.append(
            (ended if ended is not None else lines[-1][0], 2, f"the resumption ends: {observation.resumed}", RESUMED)
        )
    lines.sort()
    cut = next(index for index, line in enumerate(lines) if line[1] == 0)
    shown = set(range(cut - _BEFORE, cut + _AFTER)) | {index for index, line in enumerate(lines) if line[1] == 2}
    shown |= {index for index, line in enumerate(lines) if line[2].startswith("effect ")}
    if verdict.at_s is not None:
        at = min(range(len(lines)), key=lambda index: abs(lines[index][0] - (verdict.at_s or 0.0)))
        shown |= set(range(at - 3, at + 2))
    made, last = [], None
    for index, (at_s, _, words, part) in enumerate(lines):
        if index not in shown or part not in (FIRST, RESUMED):
            continue
        if last is not None and index != last + 1:
            made.append(f"{'…':>12}")
        made.append(f"{at_s:12.6f}  {'' if part == FIRST else '(resumed) '}{words}")
        last = index
    return tuple(made)


def smallest(found: Sequence[tuple[Observation, Verdict]], sizes: Mapping[str, int]) -> tuple[Observation, Verdict]:
    """Return the smallest trial that shows a finding: smallest input, then first schedule, then earliest cut."""

    def rank(item: tuple[Observation, Verdict]) -> tuple[int, int, float, str]:
        trial = item[0].trial
        schedule = -1 if trial.schedule is None else trial.schedule
        return sizes.get(trial.question_id, 0), schedule, trial.decision_timeout_s, trial.alternative

    return min(found, key=rank)
