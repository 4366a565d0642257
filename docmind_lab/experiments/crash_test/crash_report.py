"""The report of a crash test: what does not hold, where it first shows, how to repeat it, and how much was tried."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from langchain_core.messages import BaseMessage, convert_to_openai_messages

from docmind_lab.core.text import count_of
from docmind_lab.experiments.crash_test.invariants import INVARIANTS, Judgement
from docmind_lab.experiments.crash_test.observation import FIRST, RESUMED, Observation
from docmind_lab.experiments.examination import Trial
from docmind_lab.findings.finding import Block, Code, Finding, MakesFinding, after_interrupt
from docmind_lab.systems.own.inputs import BOXED
from docmind_lab.systems.own.references import AGENT_PREFIX
from docmind_lab.systems.own.run_settings import RunSettings

# Lines of a timeline before and after the cut.
_BEFORE, _AFTER = 6, 14


@dataclass(frozen=True, repr=False)
class Violation(MakesFinding):
    """One invariant that does not hold.

    alternatives: those under which it shows; "kill" for a process that is killed. trials: in how many trials it shows.
    trial: the one with the smallest input and the earliest cut; `graph_input` is its input, and `settings` what it was
    given besides. timeline: that trial, a line for each thing that happened around its cut. is_left: whether the
    alternative promises nothing of the kind, so that it is no defect. remedy: what mends it, and what became of the
    trial with it; empty where none is known.
    """

    invariant: str
    what: str
    alternatives: tuple[str, ...]
    trials: int
    trial: Trial
    graph_input: Mapping[str, Any]
    evidence: str
    timeline: tuple[str, ...]
    is_left: bool = False
    remedy: str = ""
    settings: RunSettings = field(default_factory=RunSettings)

    def pytest_function(self, graph: str, seed: int, options: Mapping[str, Any], objects: Sequence[str] = ()) -> str:
        """Return a test that repeats the violation, and fails while it is there; a comment where none can be written.

        options: of `cut_at`, by name. objects: its arguments that are objects of the user's program.
        """
        name = re.sub(r"\W+", "_", f"{self.invariant}_{self.what}".lower()).strip("_")
        trial, given = self.trial, plain_input(self.graph_input)
        if graph.startswith(AGENT_PREFIX):
            given = {"question": given["question"], **given["keywords"]}
        besides = {key: value for key, value in vars(self.settings).items() if value}
        objects = [*objects, *(key for key, value in {**self.graph_input, **besides}.items() if not _is_plain(value))]
        together = {**options, **besides}.items()
        rest = "".join(f", {key}={key if key in objects else repr(value)}" for key, value in together)
        if objects:
            call = f"cut_at(graph, graph_input, {trial.alternative!r}, {trial.decision_timeout_s!r}, seed={seed}{rest})"
            names = ", ".join(objects).replace(BOXED, "graph_input")
            return f"# Objects of your program cannot be written down: {names}. With them:\n# {call}\n"
        return (
            "import pytest\n\n"
            "from docmind_lab.testing import cut_at\n\n\n"
            '@pytest.mark.parametrize(("alternative", "at_s", "seed"), '
            f"[({trial.alternative!r}, {trial.decision_timeout_s!r}, {seed})])\n"
            f"def test_{name}(alternative, at_s, seed):\n"
            f"    graph_input = {given!r}\n"
            f"    cut_at({graph!r}, graph_input, alternative, at_s, seed=seed{rest})\n"
        )

    def finding(self) -> Finding:
        """Return what does not hold, where, what shows it, and the timeline."""
        trial = self.trial
        cut = "killed" if trial.is_kill else f"{trial.alternative}, deadline"
        words: tuple[Block, ...] = (
            f"{self.what} ({', '.join(self.alternatives)}; {count_of(self.trials, 'trial')})",
            f"input {trial.question_id}, {cut} at {trial.decision_timeout_s:.6f} s",
            self.evidence,
            *([f"Remedy: {self.remedy}"] if self.remedy else []),
            tuple(line.strip() for line in self.timeline),
        )
        numbers = {
            "invariant": self.invariant,
            "what": self.what,
            "alternatives": list(self.alternatives),
            "trials": self.trials,
            "input": plain_input(self.graph_input),
            "alternative": trial.alternative,
            "at_s": trial.decision_timeout_s,
            "evidence": self.evidence,
            "remedy": self.remedy,
            "timeline": list(self.timeline),
        }
        return Finding(words, numbers)


@dataclass(frozen=True)
class Coverage:
    """How much of one input's run under one alternative was tried.

    alternative: or "kill". found: cut points of the undisturbed run. tried: of those, at which instants the run was
    cut. skipped: why the others were not; empty if all were. kinds: kind of cut point → (found, tried). not_judged:
    trials that could not be judged, with the reason of the first.
    """

    input_id: str
    alternative: str
    found: int
    tried: int
    skipped: str = ""
    kinds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    not_judged: tuple[int, str] = (0, "")

    def lines(self) -> Iterator[str]:
        """Yield how much was tried, and how much could not be judged."""
        skipped = f"; {self.skipped}" if self.skipped else ""
        yield f"input {self.input_id}, {self.alternative}: {self.tried} of {self.found} cut points{skipped}"
        if self.not_judged[0]:
            yield f"{count_of(self.not_judged[0], 'trial')} not judged: {self.not_judged[1]}"


@dataclass(frozen=True, repr=False)
class CrashReport(MakesFinding):
    """The result of a crash test.

    graph: its reference, or its name. findings: what does not hold, the most frequent first. left: what an alternative
    leaves that promises nothing of the kind. coverage: how much was tried, for each input and alternative. judged:
    invariant → in how many trials it was judged. trials: how many runs were cut. notes: what a reader should know of
    the measurement. options: further arguments of `cut_at` that repeat a trial. objects: its arguments
    that are objects of the user's program. verdicts: one row for each trial and invariant: input_id, alternative, at_s
    (virtual seconds), invariant, status ("holds", "broken", "left" or "not judged") and what is wrong. interrupted: how
    many trials of how many are finished; empty where all are.
    """

    graph: str
    findings: tuple[Violation, ...]
    left: tuple[Violation, ...]
    coverage: tuple[Coverage, ...]
    judged: Mapping[str, int]
    trials: int
    notes: tuple[str, ...] = ()
    seed: int = 7
    options: Mapping[str, Any] = field(default_factory=dict)
    objects: tuple[str, ...] = ()
    verdicts: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)
    interrupted: str = ""

    @property
    def holds(self) -> bool:
        """Whether every invariant held in every trial, and at least one trial was judged."""
        return not self.findings and any(self.judged.values())

    def pytest_functions(self) -> str:
        """Return a test for each finding, as the text of a module."""
        of_report = self.graph, self.seed, self.options, self.objects
        tests = [finding.pytest_function(*of_report) for finding in self.findings]
        tests = [test for test in tests if not test.startswith("#")] or tests[:1]
        head, _, _ = tests[0].partition("@pytest") if tests else ("", "", "")
        return head + "\n\n".join(test[len(head) :] for test in tests)

    def finding(self) -> Finding:
        """Return each violation with its test, what is left, the invariants, and how much was tried."""
        words: list[Block] = [after_interrupt(self.interrupted, self._summary())]
        for number, violation in enumerate(self.findings, 1):
            what, *rest = violation.finding().words
            test = violation.pytest_function(self.graph, self.seed, self.options, self.objects)
            words += [f"{number}. {what}", *rest, "Its test:", Code(test)]
        words += [] if self.findings else ["No findings."]
        for violation in self.left:
            where = ", ".join(violation.alternatives)
            words.append(f"{where} leaves, as it says: {violation.what} ({count_of(violation.trials, 'trial')})")
        for name, meaning in INVARIANTS.items():
            broken = sum(violation.invariant == name for violation in self.findings)
            status = count_of(broken, "finding") if broken else "holds" if self.judged[name] else "not judged"
            words.append(f"{name:<13} {status:<12} {meaning} ({count_of(self.judged[name], 'trial')})")
        words += [*(line for each in self.coverage for line in each.lines()), *self.notes]
        numbers = {
            "graph": self.graph,
            "holds": self.holds,
            "trials": self.trials,
            "findings": [violation.finding().numbers for violation in self.findings],
            "left": [violation.finding().numbers for violation in self.left],
            "coverage": [dataclasses.asdict(each) for each in self.coverage],
            "judged": dict(self.judged),
            "notes": list(self.notes),
            "seed": self.seed,
        }
        return Finding(tuple(words), numbers)

    def as_shown(self) -> Finding:
        """Return the same, all that does not hold first, with its remedies."""
        title, *words = self.finding().words
        found = (f"{each.finding().title}{f'; {each.remedy}' if each.remedy else ''}" for each in self.findings)
        return Finding((title, tuple(found), *words))

    def _summary(self) -> str:
        trials = count_of(self.trials, "trial")
        if not any(self.judged.values()):
            return f"{self.graph}: nothing could be judged in {trials}."
        if self.findings:
            return f"{self.graph}: {count_of(len(self.findings), 'finding')} in {trials}."
        return f"{self.graph}: every invariant held in {trials}."


def plain_input(graph_input: Mapping[str, Any]) -> Any:
    """Return an input as JSON types, so that it can be written down and given again."""
    plain = {}
    for key, value in graph_input.items():
        if isinstance(value, list) and any(isinstance(item, BaseMessage) for item in value):
            value = convert_to_openai_messages(value)
        try:
            json.dumps(value)
        except TypeError:
            value = repr(value)
        plain[key] = value
    return plain.get(BOXED, plain)


def _is_plain(value: Any) -> bool:
    return bool(plain_input({"": value})[""] != repr(value))


def timeline_of(observation: Observation, judgement: Judgement) -> tuple[str, ...]:
    """Return what happened around the cut of a trial, and around what its judgement shows, in lines."""
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
    if judgement.at_s is not None:
        at = min(range(len(lines)), key=lambda index: abs(lines[index][0] - (judgement.at_s or 0.0)))
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
