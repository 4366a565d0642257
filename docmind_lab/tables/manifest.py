"""The manifest of a study: what determined its runs, and the machine they ran on."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from docmind_lab.core.alternative_catalogue import Chooses
from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.settings import Settings
from docmind_lab.core.whole_files import json_text

# Two keys, of which a changed byte hits one at the most: with neither the manifest is of an older version.
_OF_TABLES, _OF_ITSELF = "table_sha256", "manifest_sha256"
_CHANGED: Final = "cannot be read (it was changed after it was written: its checksum is another)"

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
    """Measures the CPU time and the wall time that the runs of a study take, from its creation on.

    workers_cpu_s: CPU seconds that runs took in worker processes, or one after the other in this one; None on the wall
    clock, where the runs share this process.
    """

    def __init__(self) -> None:
        self.workers_cpu_s: float | None = None
        self.runs_begin()

    def runs_begin(self) -> None:
        """Start counting again: what was built and warmed up before belongs to no run."""
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def add_workers(self, cpu_s: float) -> None:
        """Add CPU seconds of runs that a worker measured."""
        self.workers_cpu_s = (self.workers_cpu_s or 0.0) + cpu_s

    def to_dict(self, runs: int) -> dict[str, Any]:
        """Return the use until now, as JSON types.

        wall_s: seconds. cpu_s_per_run: mean CPU seconds of a run, in virtual time with those of the simulated services;
        None without runs.
        runs: number of runs of the study.
        """
        cpu_s, wall_s = time.process_time() - self._cpu_s, time.perf_counter() - self._wall_s
        of_runs_s = cpu_s if self.workers_cpu_s is None else self.workers_cpu_s
        return {
            "wall_s": round(wall_s, 3),
            "cpu_s_per_run": round(of_runs_s / runs, 4) if runs else None,
        }


def chosen_by(runs: pd.DataFrame, manifest: Mapping[str, Any]) -> Chooses:
    """Return by what the system of a study is given an alternative and its timeout in production."""
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


def with_checksums(manifest: Mapping[str, Any], tables: Mapping[str, str]) -> dict[str, Any]:
    """Return a manifest with the checksums of the tables beside it and of itself.

    tables: name of each file → its SHA-256, in hexadecimal.
    """
    content = {**json.loads(json_text(manifest)), _OF_TABLES: dict(tables)}
    return content | {_OF_ITSELF: _sha256(content)}


def without_checksums(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest as it was before `with_checksums`."""
    return {name: value for name, value in manifest.items() if name not in (_OF_TABLES, _OF_ITSELF)}


def checked_manifest(file: Path, text: str, remedy: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what `with_checksums` took: the manifest, and the checksums of tables (none in an older version's).

    remedy: text that is added to the error. Raises: RecordError (a byte of it was changed).
    """
    content = json.loads(text)
    if _OF_TABLES not in content and _OF_ITSELF not in content:
        return content, {}
    own = content.pop(_OF_ITSELF, None)
    # The text is compared too, since spaces and escapes can change without a change of what they stand for.
    if _OF_TABLES not in content or own != _sha256(content) or text != json_text(content | {_OF_ITSELF: own}):
        raise RecordError(f"{file} {_CHANGED}{remedy}")
    return without_checksums(content), content[_OF_TABLES]


def check_table(file: Path, checksums: Mapping[str, str], remedy: str) -> None:
    """Check that a file is the one that was written. Raises: RecordError if it is another.

    checksums: those of `checked_manifest`. remedy: text that is added to the error.
    """
    if file.name in checksums and file.is_file() and file_sha256(file) != checksums[file.name]:
        raise RecordError(f"{file} {_CHANGED}{remedy}")


def file_sha256(file: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _sha256(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(content).encode()).hexdigest()


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return every leaf of nested mappings by its path, such as "agents.decision_timeout"; lists are leaves."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            result |= flatten(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result
