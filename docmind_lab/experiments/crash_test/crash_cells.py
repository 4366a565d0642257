"""Trials over worker processes: a group of trials of one graph, or the shrinking of a finding, that one carries out.

A finding is shrunk to the earliest cut, the smallest input and the first schedule that still show it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from docmind_lab.core.errors import SimulationStalled
from docmind_lab.experiments.batch.cell_run import compute_cells
from docmind_lab.experiments.batch.cells import CellOutcome
from docmind_lab.experiments.batch.workers import Workers
from docmind_lab.experiments.crash_test.crash_bench import CrashBench, Subject
from docmind_lab.experiments.crash_test.crash_report import plain_input
from docmind_lab.experiments.crash_test.invariants import Judgement, Reference, judge
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.crash_test.trial import observe
from docmind_lab.experiments.examination import Trial

MOST_RUNS = 40
"""How many runs the shrinking of one finding may take."""

Found = tuple[Observation, Judgement]


def size_of(given: Mapping[str, Any]) -> int:
    """Return the size of an input: the characters of it as JSON."""
    return len(json.dumps(plain_input(given), default=str))


class Shrinking:
    """Looks for a smaller trial that shows the same finding. bench: carries trials out."""

    def __init__(self, bench: CrashBench, most_runs: int = MOST_RUNS) -> None:
        self._bench, self._left = bench, most_runs
        self._references: dict[Trial, Reference] = {}

    def shrink(self, found: Found, reference: Reference, untried: Sequence[float]) -> tuple[Found, Mapping[str, Any]]:
        """Return the smallest trial that shows a finding, its judgement, and its input.

        found: the smallest trial so far, with its judgement. reference: what it was held against. untried: earlier
        instants of the same run that were not tried.
        """
        trial = found[0].trial
        self._references[trial.undisturbed] = reference
        for at_s in sorted(untried):
            if self._left <= MOST_RUNS // 2:
                break
            earlier = self._tried(dataclasses.replace(trial, decision_timeout_s=at_s), found[1])
            if earlier is not None:
                found = earlier
                break
        if trial.schedule is not None:
            found = self._tried(dataclasses.replace(found[0].trial, schedule=None), found[1]) or found
        return self._with_less_input(found)

    def _with_less_input(self, found: Found) -> tuple[Found, Mapping[str, Any]]:
        question = self._bench.question(found[0].trial)
        given: Mapping[str, Any] = question.given
        point = _place_of(found[0])
        shrunk = True
        while shrunk and self._left > 2:
            shrunk = False
            for number, smaller in enumerate(_smaller_inputs(given)):
                if self._left <= 2:
                    break
                name = f"{question.id}~{self._left}.{number}"
                self._bench.add(dataclasses.replace(question, id=name, given=smaller))
                again = self._with_input(found, name, point)
                if again is not None:
                    found, given, shrunk = again, smaller, True
                    break
        return found, given

    def _with_input(self, found: Found, input_id: str, point: tuple[str, int]) -> Found | None:
        trial = dataclasses.replace(found[0].trial, question_id=input_id)
        reference = self._reference(trial)
        at_s = None if reference is None else _instant_of(reference.undisturbed, point)
        return None if at_s is None else self._tried(dataclasses.replace(trial, decision_timeout_s=at_s), found[1])

    def _tried(self, trial: Trial, wanted: Judgement) -> Found | None:
        """Return the trial with its judgement if it shows the finding too."""
        reference = self._reference(trial)
        if reference is None or self._left <= 0:
            return None
        self._left -= 1
        observation = observe(self._bench, trial)
        for judgement in judge(observation, reference):
            if (judgement.invariant, judgement.what, judgement.status) == (
                wanted.invariant,
                wanted.what,
                wanted.status,
            ):
                return observation, judgement
        return None

    def _reference(self, trial: Trial) -> Reference | None:
        if trial.undisturbed not in self._references:
            self._left -= 1
            undisturbed = observe(self._bench, trial.undisturbed)
            if undisturbed.not_judged or undisturbed.first.outcome == "failed":
                return None
            volatile = next(iter(self._references.values())).volatile
            self._references[trial.undisturbed] = Reference(undisturbed, volatile)
        return self._references[trial.undisturbed]


def _place_of(observation: Observation) -> tuple[str, int]:
    """Return the last thing that happened before the cut, and how often it had happened."""
    at_s = observation.trial.decision_timeout_s
    before = [str(mark) for mark in observation.of() if mark.at_s <= at_s and mark.kind != "wait"]
    return (before[-1], before.count(before[-1])) if before else ("", 0)


def _instant_of(undisturbed: Observation, place: tuple[str, int]) -> float | None:
    """Return the instant just after what stood before the cut."""
    instants = [mark.at_s for mark in undisturbed.of() if str(mark) == place[0]]
    return round(instants[place[1] - 1] + 1e-6, 9) if 0 < place[1] <= len(instants) else None


def _smaller_inputs(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield smaller forms of an input, the smallest first: less of its texts and lists."""
    for key, value in given.items():
        for smaller in _smaller(value):
            yield {**given, key: smaller}


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        words = value.split()
        if len(words) > 1:
            yield words[0]
            yield " ".join(words[: len(words) // 2])
    elif isinstance(value, BaseMessage) and isinstance(value.content, str):
        for text in _smaller(value.content):
            yield value.model_copy(update={"content": text})
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        if len(value) > 1:
            yield list(value[:1])
            yield list(value[-1:])
        for position, item in enumerate(value):
            for smaller in _smaller(item):
                yield [*value[:position], smaller, *value[position + 1 :]]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            for smaller in _smaller(item):
                yield {**value, key: smaller}


_TRIALS_PER_CELL = 6

# Virtual time belongs to a process as a whole.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class _Cell:
    """Trials that one worker carries out. id: unique in its crash test."""

    id: str
    subject: Subject
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class _CellResult(CellOutcome):
    """What the trials of a cell showed."""

    observations: tuple[Observation, ...] = ()


def _run_cell(cell: _Cell, attempt: int = 1) -> _CellResult:
    """Carry out the trials of a cell, one after the other. attempt: counts, as in `run_cell`."""
    observations: list[Observation] = []
    with _one_at_a_time:
        for trial in cell.trials:
            try:
                observations.append(observe(_bench_of(cell.subject), trial))
            except SimulationStalled as error:
                why = str(error).partition("\n")[0]
                if attempt == 1 and len(cell.trials) > 1:
                    return _CellResult(cell.id, stalled=why)
                rest = cell.trials[len(observations) :]
                observations += [Observation(each, not_judged=why) for each in rest]
                break
    return _CellResult(cell.id, tuple(observations))


def shrink_finding(
    subject: Subject, found: Found, reference: Reference, untried: Sequence[float]
) -> tuple[Found, Mapping[str, Any]]:
    """Return the smallest trial that shows a finding, its judgement, and its input; see `Shrinking.shrink`.

    Raises: SimulationStalled.
    """
    with _one_at_a_time:
        return Shrinking(_bench_of(subject)).shrink(found, reference, untried)


# Two: a crash test that shrinks an input has one bench for it and one for the inputs that it was given.
@functools.lru_cache(maxsize=2)
def _bench_of(subject: Subject) -> CrashBench:
    """Return the bench of this process for a subject, made at its first use."""
    return CrashBench(subject)


def observe_all(
    subject: Subject,
    trials: Sequence[Trial],
    workers: Workers,
    stop: threading.Event | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> Iterator[Observation]:
    """Yield what each trial showed, as it is done.

    stop: set by another thread, no further trial is begun. done: called with the number of trials that were just done.

    Raises: what a trial raises that cannot be carried out at all.
    """
    chunks = [tuple(trials[at : at + _TRIALS_PER_CELL]) for at in range(0, len(trials), _TRIALS_PER_CELL)]
    cells = {f"{number:05}": _Cell(f"{number:05}", subject, chunk) for number, chunk in enumerate(chunks)}
    for result in compute_cells(cells.values(), _run_cell, _CellResult, workers, stop):
        trials_of = cells[result.cell_id].trials
        if isinstance(result.error, SimulationStalled):
            why = str(result.error).partition("\n")[0]
            yield from (Observation(trial, not_judged=why) for trial in trials_of)
        elif result.error is not None:
            raise result.error
        yield from result.observations
        done(len(trials_of))
