"""`recommend`: how long the decision timeout of a system should be, from a sweep of timeouts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.experiments.batch.cell_run import Progress
from docmind_lab.experiments.comparison.comparison import Alternatives
from docmind_lab.experiments.comparison.documents import kind_of
from docmind_lab.experiments.sweeps.sweep_run import sweep
from docmind_lab.experiments.system_options import system_of
from docmind_lab.experiments.world_options import AnyWorld
from docmind_lab.findings.recommendation import Recommendation
from docmind_lab.systems.kinds import workload_kind
from docmind_lab.systems.own.own_kind import DEFAULTS

_OF_THE_DEFAULT: Final = (0.5, 1.0, 1.5, 2.0, 3.0)
# 73 runs without a failure show that 95 % are answered in time, with 95 % confidence; some more leave room for one.
_RUNS: Final = 120


@answers_wrong_names
def recommend(
    system: Any = None,
    target: float = 0.95,
    *,
    confidence: float = 0.95,
    decision_timeouts_s: Sequence[float] | None = None,
    alternatives: Alternatives = None,
    world: AnyWorld | None = None,
    runs: int = _RUNS,
    seed: int = 7,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Recommendation:
    """Measure a system at several decision timeouts, and name the smallest that is sure to reach a target.

        dl.recommend(dl.graph(my_graph, ["…"]), 0.95, decision_timeouts_s=[5, 10, 20])

    Args:
        system: What is under the deadline, as `compare` takes it.
        target: Share of runs that should be answered in time, above 0, below 1.
        confidence: How sure to be of it, above 0, below 1.
        decision_timeouts_s: Those to try, in seconds. None means half to three times the system's own.
        alternatives: As `compare` takes them.
        world: What the system meets, as `compare` takes it.
        runs: Questions asked of each alternative at each timeout.
        seed: Keys the questions, latencies and faults.
        out: A folder for the study, as `sweep` takes it.
        workers: Processes in virtual time, as `sweep` takes them.
        progress: Called with (runs done, all runs).

    Returns:
        The recommendation: a table, sentences, and how many more runs would settle what is open.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    subject = system_of(system)
    if decision_timeouts_s is None:
        kind = kind_of(subject)
        usual_s = (workload_kind(kind).defaults if kind else DEFAULTS)["virtual"].decision_timeout_s
        decision_timeouts_s = [usual_s * factor for factor in _OF_THE_DEFAULT]
    factors: dict[str, Any] = {"decision_timeout_s": list(decision_timeouts_s)}
    if alternatives is not None:
        factors["alternatives"] = alternatives
    study = sweep(subject, factors, world=world, runs=runs, seed=seed, out=out, workers=workers, progress=progress)
    return study.recommend(target, confidence)
