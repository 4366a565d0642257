"""Rank policies for the time of calls by regret: run a study, and beside it what a clairvoyant would have done.

    ranking = rank_by_regret("study.toml", out="results/policies")
    ranking = rank_load_by_regret(load_options(table))

The second study is the probe: the same questions, seeds and latencies, with every call made twice at once and time
enough to end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from docmind_lab.analysis.regret import (
    PROBE_POLICY,
    Clairvoyant,
    PolicyRanking,
    rank_policies,
    rank_under_load,
)
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.load import run_load
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.experiments.sweeps.runner import sweep

_PROBE: Final = f"A+{PROBE_POLICY}"
# Long enough for every run of the lab's workloads to end by itself.
_TIME_ENOUGH: Final = 30.0
_NO_LIMIT_OF_SLOTS: Final = 100_000


def probe_of(design: StudyDesign) -> StudyDesign:
    """Return the design of the probe: what the runs of a study meet, with every call made twice at once.

    Args:
        design: The study.

    Raises:
        ConfigurationError: The study is of a graph of one's own, of a replay, or on the wall clock.
    """
    if design.is_of_own_graph or design.replay is not None:
        raise ConfigurationError("regret is measured for the lab's own workloads, not for a graph or a replay")
    factors = design.factors
    if factors.clock != ("virtual",):
        raise ConfigurationError('factors.clock: regret needs the same latencies in two studies; say "virtual"')
    kept = {name: getattr(factors, name) for name in ("latency_profile", "fault", "workload", "router_injection")}
    longest_s = max(factors.decision_timeout_s)
    own = design.model_dump(exclude={"factors", "name", "horizon_factor"}, exclude_unset=True)
    return StudyDesign.of(
        own
        | {
            "name": f"{design.name}-probe"[:40],
            "horizon_factor": 2.0,
            "factors": {**kept, "alternative": [_PROBE], "decision_timeout_s": _TIME_ENOUGH * longest_s},
        }
    )


def rank_by_regret(
    design: StudyDesign | Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> PolicyRanking:
    """Run a study and its probe, and rank the arms of the study by their regret.

    Args:
        design: The study, as `sweep` takes it; with policies among its factors or in the names of its alternatives.
        out: A folder for both studies; the same call goes on where an earlier one ended.
        workers: Processes; None for one on each core.
        settings: Endpoints and defaults; None for those of the environment.
        progress: Called with (done, all) runs of each of the two studies.
        stop: Set by another thread, it ends the study with what is done.

    Raises:
        ConfigurationError: A design that cannot be used, or one without gold answers.
    """
    checked = design if isinstance(design, StudyDesign) else _read(design)
    studies = []
    for name, each in (("probe", probe_of(checked)), ("study", checked)):
        folder = None if out is None else Path(out) / name
        studies.append(sweep(each, out=folder, workers=workers, settings=settings, progress=progress, stop=stop))
    probe, study = studies
    return rank_policies(study, Clairvoyant.of(probe))


def _read(design: Mapping[str, Any] | str | os.PathLike[str]) -> StudyDesign:
    return StudyDesign.of(design) if isinstance(design, Mapping) else StudyDesign.read(design)


def rank_load_by_regret(
    options: Mapping[str, Any],
    *,
    workers: int | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> PolicyRanking:
    """Run a load study and its probe, and rank the arms of the study by their regret.

    Args:
        options: The keywords of `run_load`, as `load_options` reads them from a file.
        workers: Processes; None for one on each core.
        settings: Endpoints and defaults; None for those of the environment.
        progress: Called with (done, all) queries of each of the two studies.
        stop: Set by another thread, it ends the study with what is done.

    Raises:
        ConfigurationError: A design that cannot be used.
    """
    if "traces" in options:
        raise ConfigurationError("load.traces: policies change the path of a run, which recorded runs do not show")
    shared: dict[str, Any] = {"workers": workers, "settings": settings, "progress": progress, "stop": stop}
    # The same queries at every load; without a limit of slots they do not meet.
    slowest = min(options["arrivals"], key=lambda each: each.rate_per_s)
    alone = {"arrivals": [slowest], "alternatives": [_PROBE], "slots": _NO_LIMIT_OF_SLOTS, "warm_up_s": 0.0}
    probe = run_load(**{**options, **alone}, **shared)
    study = run_load(**options, **shared)
    return rank_under_load(study.queries, study.servings, probe.queries)
