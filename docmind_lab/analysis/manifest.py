"""The manifest of a study: what determined its runs, and the machine they ran on."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd

from docmind_lab.core.catalogue import Chooses
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.settings import Settings

PACKAGES = (
    "docmind_lab",
    "langchain",
    "langchain-openai",
    "langgraph",
    "openai",
    "qdrant-client",
    "httpx",
    "httpx2",
    "pandas",
)


class MachineUse:
    """Measures how busy the machine is while the runs of a study go on, from its creation on.

    workers_cpu_s: CPU seconds that runs took in worker processes, or one after the other in this one; None on the wall
    clock, where the runs share this process.
    """

    def __init__(self) -> None:
        self.workers_cpu_s: float | None = None
        self._load = _load_per_core()
        self.runs_begin()

    def runs_begin(self) -> None:
        """Start counting again: what was built and warmed up before belongs to no run."""
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def add_workers(self, cpu_s: float) -> None:
        """Add CPU seconds of runs that a worker measured."""
        self.workers_cpu_s = (self.workers_cpu_s or 0.0) + cpu_s

    def to_dict(self, runs: int) -> dict[str, Any]:
        """Return the use until now, as JSON types.

        Args:
            runs: Number of runs of the study.

        Returns:
            load_per_core: the load average of the last minute per core, at the start and at the end; None where the
            system tells none. wall_s: seconds. cpu_per_wall: CPU seconds of this process in each of them.
            cpu_s_per_run: mean CPU seconds of a run, in virtual time with those of the simulated services; None without
            runs.
        """
        cpu_s, wall_s = time.process_time() - self._cpu_s, time.perf_counter() - self._wall_s
        of_runs_s = cpu_s if self.workers_cpu_s is None else self.workers_cpu_s
        return {
            "load_per_core": [self._load, _load_per_core()],
            "wall_s": round(wall_s, 3),
            "cpu_per_wall": round(cpu_s / wall_s, 3) if wall_s > 0 else None,
            "cpu_s_per_run": round(of_runs_s / runs, 4) if runs else None,
        }


def _load_per_core() -> float | None:
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
    except (AttributeError, OSError):  # there is none on Windows, nor in some containers
        return None


def chosen_by(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> Chooses:
    """Return by what the system of a study is given an alternative and its timeout in production.

    Args:
        runs: The study's table.
        manifest: The study's manifest.
    """
    workload = str(runs["workload"].iloc[0])
    system = manifest.get("systems", {}).get(workload, {})
    kind = str(system.get("kind", workload))
    # A manifest of an older version does not say it. The workloads of the lab have plain names, others a colon.
    if system.get("reads_settings", ":" not in kind):
        return "settings"
    return "enforce" if kind.startswith("own:") and not kind.startswith("own:agent:") else "nothing"


def manifest_of(
    design: Mapping[str, Any],
    settings: Settings,
    *,
    study_id: str,
    complete: bool,
    systems: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the manifest as JSON types. It holds no API key, no text of a user, and no path of the machine.

    design: what determines the runs. complete: False when the study was interrupted. systems: level of `workload` →
    what it is called, and what its runs are asked.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "study_id": study_id,
        "complete": complete,
        "created_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "design": dict(design),
        "systems": {name: dict(text) for name, text in (systems or {}).items()},
        "settings": settings.recorded(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
