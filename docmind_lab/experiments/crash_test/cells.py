"""Trials over worker processes: a group of trials of one graph that one worker carries out."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docmind_lab.core.errors import SimulationStalled
from docmind_lab.experiments.batch.cells import CellOutcome
from docmind_lab.experiments.batch.runner import compute_cells
from docmind_lab.experiments.batch.workers import Workers
from docmind_lab.experiments.crash_test.bench import CrashBench, Subject
from docmind_lab.experiments.crash_test.invariants import Reference
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.crash_test.shrink import Found, Shrinking
from docmind_lab.experiments.trials import Trial

TRIALS_PER_CELL = 6

# Virtual time belongs to a process as a whole.
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class CrashCell:
    """Trials that one worker carries out. id: unique in its crash test."""

    id: str
    subject: Subject
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class CrashCellResult(CellOutcome):
    """What the trials of a cell showed."""

    observations: tuple[Observation, ...] = ()


def run_crash_cell(cell: CrashCell, attempt: int = 1) -> CrashCellResult:
    """Carry out the trials of a cell, one after the other. attempt: counts, as in `run_cell`."""
    observations: list[Observation] = []
    with _one_at_a_time:
        for trial in cell.trials:
            try:
                observations.append(bench_of(cell.subject).observe(trial))
            except SimulationStalled as error:
                if attempt == 1 and len(cell.trials) > 1:
                    return CrashCellResult(cell.id, stalled=str(error).partition("\n")[0])
                why = str(error).partition("\n")[0]
                rest = cell.trials[len(observations) :]
                observations += [Observation(each, not_judged=why) for each in rest]
                break
    return CrashCellResult(cell.id, tuple(observations))


@dataclass(frozen=True)
class ShrinkOrder:
    """A finding that one worker reduces.

    Args:
        subject: The graph and what its runs are given.
        found: The smallest trial so far, with its verdict.
        reference: What it was held against.
        untried: Earlier instants of the same run that were not tried.
    """

    subject: Subject
    found: Found
    reference: Reference
    untried: tuple[float, ...]


def run_shrink_order(order: ShrinkOrder) -> tuple[Found, Mapping[str, Any]]:
    """Return the smallest trial that shows a finding, its verdict, and its input. Raises: SimulationStalled."""
    with _one_at_a_time:
        return Shrinking(bench_of(order.subject)).shrink(order.found, order.reference, order.untried)


# Two: a crash test that shrinks an input has one bench for it and one for the inputs that it was given.
@functools.lru_cache(maxsize=2)
def bench_of(subject: Subject) -> CrashBench:
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

    Args:
        subject: The graph and what its runs are given.
        trials: What is to be tried.
        workers: Carry it out.
        stop: Set by another thread, no further trial is begun.
        done: Called with the number of trials that were just done.

    Raises: what a trial raises that cannot be carried out at all.
    """
    chunks = [tuple(trials[at : at + TRIALS_PER_CELL]) for at in range(0, len(trials), TRIALS_PER_CELL)]
    cells = {f"{number:05}": CrashCell(f"{number:05}", subject, chunk) for number, chunk in enumerate(chunks)}
    for result in compute_cells(cells.values(), run_crash_cell, CrashCellResult, workers, stop):
        trials_of = cells[result.cell_id].trials
        if isinstance(result.error, SimulationStalled):
            why = str(result.error).partition("\n")[0]
            yield from (Observation(trial, not_judged=why) for trial in trials_of)
        elif result.error is not None:
            raise result.error
        yield from result.observations
        done(len(trials_of))
