"""Trials over worker processes: a group of trials of one graph that one of them carries out."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from docmind_lab.core.errors import SimulationStalled
from docmind_lab.experiments.batch.cell_run import compute_cells
from docmind_lab.experiments.batch.cells import CellOutcome
from docmind_lab.experiments.batch.workers import Workers
from docmind_lab.experiments.crash_test.crash_bench import CrashBench, Subject
from docmind_lab.experiments.crash_test.observation import Observation
from docmind_lab.experiments.crash_test.trial import observe
from docmind_lab.experiments.examination import Trial

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


@functools.lru_cache(maxsize=1)
def _bench_of(subject: Subject) -> CrashBench:
    """Return the bench of this process for a subject, made at its first use."""
    return CrashBench(subject)


def observe_all(
    subject: Subject,
    trials: Sequence[Trial],
    workers: Workers,
    done: Callable[[int], None] = lambda count: None,
) -> Iterator[Observation]:
    """Yield what each trial showed, as it is done.

    done: called with the number of trials that were just done.

    Raises: what a trial raises that cannot be carried out at all.
    """
    chunks = [tuple(trials[at : at + _TRIALS_PER_CELL]) for at in range(0, len(trials), _TRIALS_PER_CELL)]
    cells = {f"{number:05}": _Cell(f"{number:05}", subject, chunk) for number, chunk in enumerate(chunks)}
    for result in compute_cells(cells.values(), _run_cell, _CellResult, workers):
        trials_of = cells[result.cell_id].trials
        if isinstance(result.error, SimulationStalled):
            why = str(result.error).partition("\n")[0]
            yield from (Observation(trial, not_judged=why) for trial in trials_of)
        elif result.error is not None:
            raise result.error
        yield from result.observations
        done(len(trials_of))
