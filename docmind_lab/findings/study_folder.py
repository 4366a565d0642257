"""The folder of a study: its design, a file for each finished cell, and at the end the tables.

design.json       what the study is; a folder belongs to one study
cells/NNN.parquet a finished cell, there whole or not at all
runs.parquet, calls.parquet, events.parquet, manifest.json    the study; the manifest last
.study.lock       held by the process that works on the study; the system frees it when that process ends
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.settings import Settings
from docmind_lab.core.whole_files import Write, as_json, write_whole
from docmind_lab.findings.study import (
    CELLS,
    DESIGN,
    MANIFEST,
    Study,
    files_of,
    is_finished,
    read_design,
    require_writable,
)
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.tables.manifest import flatten
from docmind_lab.tables.records import TABLES, RunRows

_LOCK = ".study.lock"
# Settings that are factors, or that affect no run.
_NOT_OF_RUNS: Final = {
    "agents": {"decision_timeout", "enable_router_injection"},
    "security": True,
    "log_level": True,
}


class StudyFolder:
    """The folder of one study, which a process holds while the block lasts: it is a context manager.

    A study that is interrupted before its first cell leaves no folder.
    Raises: ConfigurationError if it cannot be written, is another study's, or another process works on it.
    """

    def __init__(
        self, path: str | os.PathLike[str], study_id: str, design: Mapping[str, Any], settings: Settings
    ) -> None:
        self.path = require_writable(path)
        self.study_id, self.design, self.settings = study_id, design, settings.recorded(_NOT_OF_RUNS)
        self.store = CellStore(self.path / CELLS, study_id)
        self._held = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as until_held:
            until_held.callback(os.close, self._locked_file())
            self._belongs_to_us()
            if is_finished(self.path):
                self._tidy()
            else:
                with _explaining(self.path):
                    self.store.folder.mkdir(exist_ok=True)
            self._held = until_held.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._discard_without_cells()
        self._held.close()

    def _belongs_to_us(self) -> None:
        known = read_design(self.path)
        if known is None:
            if (self.path / MANIFEST).exists():
                raise ConfigurationError(f"--out {self.path} holds another study; choose another folder or remove it")
            facts = {"study_id": self.study_id, "design": self.design, "settings": self.settings}
            self._write(self.path / DESIGN, as_json(facts))
        elif known["study_id"] != self.study_id:
            raise ConfigurationError(
                f"--out {self.path} belongs to another study ({known['study_id']}, and this is {self.study_id}): its "
                "seed, repeats, factors, documents or questions differ; choose another folder or remove it"
            )
        elif known["settings"] != self.settings:
            earlier, ours = flatten(known["settings"]), flatten(self.settings)
            names = ", ".join(sorted(name for name in earlier | ours if earlier.get(name) != ours.get(name)))
            raise ConfigurationError(
                f"--out {self.path} was begun with other settings ({names}), and runs of both would be mixed; set them "
                "as they were, or choose another folder"
            )

    def keep(self, cell_id: str, measured: Sequence[RunRows]) -> None:
        """Write a finished cell. Raises: RecordError if it cannot be written; the other cells are intact."""
        with _explaining(self.store.folder):
            self.store.write(cell_id, measured)

    def _discard_without_cells(self) -> None:
        if self.store.done() or is_finished(self.path):
            return
        with contextlib.suppress(OSError):
            for path in (self.path / DESIGN, self.path / _LOCK):
                path.unlink(missing_ok=True)
            self.store.folder.rmdir()
            self.path.rmdir()

    def finish(
        self,
        cell_ids: Sequence[str],
        manifest: Mapping[str, Any],
        facts_of: Callable[[Study], Mapping[str, Any]] = lambda study: {},
    ) -> Study:
        """Write tables and manifest, and return the study of these cells; a complete study's cells are removed.

        facts_of: study → what its manifest says besides, of the tables.
        Raises: RecordError when they cannot be written.
        """
        tables = self.store.read(cell_ids)
        study = Study(tables.runs, tables.calls, tables.events, manifest)
        study = dataclasses.replace(study, manifest={**manifest, **facts_of(study)})
        for name, write in files_of(study.tables, study.manifest):
            self._write(self.path / name, write)
        if study.manifest["complete"]:
            self._tidy()
        return study

    def _tidy(self) -> None:
        """Remove the cells of a finished study, and temporary files of interrupted writes."""
        leftovers = [path for name in (*TABLES, MANIFEST, DESIGN) for path in self.path.glob(f".{name}.*")]
        # Earlier versions had a lock for each cell.
        for path in (*leftovers, *self.store.folder.glob("*.lock")):
            path.unlink(missing_ok=True)
        self.store.remove()

    def _write(self, path: Path, write: Write) -> None:
        with _explaining(path.parent):
            write_whole(path, write)

    def _locked_file(self) -> int:
        """Return the descriptor of the lock file; the lock lasts until it is closed."""
        with _explaining(self.path):
            descriptor = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise ConfigurationError(
                f"--out {self.path}: another process works on this study; wait for its end, or choose another folder"
            ) from error
        return descriptor


@contextlib.contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    """Have what cannot be written in the block raise a RecordError that names the folder and the remedy."""
    try:
        yield
    except OSError as error:
        raise RecordError(
            f"{folder} cannot be written ({error.strerror or error}); the cells that are done are intact: make room, "
            "then run the same study again, and it goes on from there"
        ) from error
