"""The folder of a study: its design, a file for each finished cell, and at the end the tables.

    design.json       what the study is; a folder belongs to one study
    cells/NNN.parquet a finished cell, there whole or not at all
    cells/NNN.lock    held by the process that computes the cell; the system frees it when that process ends
    runs.parquet, calls.parquet, events.parquet, manifest.json    the study; the manifest last

Several processes may work on one folder, on one machine: each computes cells that no other has claimed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

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

_FINISHING = ".finishing.lock"


# A forked process shares the locks of its parent, and would keep them after the parent's end.
_locks_held: set[int] = set()


def _forget_the_parents_locks() -> None:
    for descriptor in _locks_held:
        os.close(descriptor)
    _locks_held.clear()


os.register_at_fork(after_in_child=_forget_the_parents_locks)


class StudyFolder:
    """The folder of one study. Raises: ConfigurationError if it cannot be written, or is another study's."""

    def __init__(
        self, path: str | os.PathLike[str], study_id: str, design: Mapping[str, Any], settings: Settings
    ) -> None:
        self.path = require_writable(path)
        self.study_id, self.design, self.settings = study_id, design, _settings_of_runs(settings)
        self.store = CellStore(self.path / CELLS, study_id)
        self._claims: dict[str, int] = {}
        with self._locked_folder():
            self._belongs_to_us()
            if self.finished():
                self._tidy()
            else:
                self._make_folder(self.store.folder)

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
            begun, ours = flatten(known["settings"]), flatten(self.settings)
            names = ", ".join(sorted(name for name in begun | ours if begun.get(name) != ours.get(name)))
            raise ConfigurationError(
                f"--out {self.path} was begun with other settings ({names}), and runs of both would be mixed; set them "
                "as they were, or choose another folder"
            )

    def finished(self) -> bool:
        """Whether the study's tables are written, with every cell in them."""
        return is_finished(self.path)

    def done(self) -> set[str]:
        """Return the ids of the cells that are done."""
        return self.store.done()

    def claim(self, cell_id: str) -> bool:
        """Claim a cell for this process; return False if it is done, or another process works on it."""
        try:
            descriptor = os.open(self.store.folder / f"{cell_id}.lock", os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another process has finished the study
            if not self.finished():
                raise RecordError(
                    f"{self.path} was removed while the study went on; run the same study again, from the beginning"
                ) from None
            return False
        except OSError as error:
            raise _unwritable(self.store.folder, error) from error
        _locks_held.add(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _unlock(descriptor)
            return False
        # Looked at under the lock: since we last looked another process may have finished the cell, or the study.
        if self.store.has(cell_id) or self.finished():
            _unlock(descriptor)
            return False
        self._claims[cell_id] = descriptor
        return True

    def keep(self, cell_id: str, measured: Sequence[RunRows]) -> None:
        """Write a finished cell. Raises: RecordError if it cannot be written; the other cells are intact."""
        try:
            self.store.write(cell_id, measured)
        except OSError as error:
            raise _unwritable(self.store.folder, error) from error

    def release(self, cell_id: str) -> None:
        """Release the claim on a cell, done or not."""
        with contextlib.suppress(KeyError):
            _unlock(self._claims.pop(cell_id))

    def release_all(self) -> None:
        """Release the claims on all cells that are not done."""
        for cell_id in list(self._claims):
            self.release(cell_id)

    def discard_without_cells(self) -> None:
        """Remove the folder of a study stopped before its first cell, unless another process works on one."""
        with self._locked_folder():
            if self.done() or self.finished() or not self._all_are_free():
                return
            with contextlib.suppress(OSError):
                for path in (*self.store.folder.glob("*.lock"), self.path / DESIGN, self.path / _FINISHING):
                    path.unlink(missing_ok=True)
                self.store.folder.rmdir()
                self.path.rmdir()

    def _all_are_free(self) -> bool:
        """Whether no process works on a cell of this folder."""
        names = [path.name.removesuffix(".lock") for path in self.store.folder.glob("*.lock")]
        claims = [self.claim(name) for name in names]
        self.release_all()
        return all(claims)

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
        with self._locked_folder():
            if self.finished():  # by another process, since we looked
                self._tidy()
                return Study.load(self.path)
            tables = self.store.read(cell_ids)
            study = Study(tables.runs, tables.calls, tables.events, manifest)
            study = dataclasses.replace(study, manifest={**manifest, **facts_of(study)})
            for name, write in files_of(study, TABLES):
                self._write(self.path / name, write)
            if study.manifest["complete"]:
                self._tidy()
        return study

    def _tidy(self) -> None:
        """Remove the cells of a finished study, and temporary files of interrupted writes."""
        self.release_all()
        leftovers = [path for name in (*TABLES, MANIFEST, DESIGN) for path in self.path.glob(f".{name}.*")]
        for path in (*leftovers, *self.store.folder.glob("*.lock")):
            path.unlink(missing_ok=True)
        self.store.remove()

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _write(self, path: Path, write: Write) -> None:
        try:
            write_whole(path, write)
        except OSError as error:
            raise _unwritable(path.parent, error) from error

    @contextlib.contextmanager
    def _locked_folder(self) -> Iterator[None]:
        try:
            descriptor = os.open(self.path / _FINISHING, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        _locks_held.add(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            _unlock(descriptor)


def _settings_of_runs(settings: Settings) -> dict[str, Any]:
    """Return the settings that affect a run, as JSON types; without factors, secrets and paths."""
    return settings.recorded(
        {"agents": {"decision_timeout", "enable_router_injection"}, "security": True, "log_level": True}
    )


def _unlock(descriptor: int) -> None:
    """Release a lock, even if another process has its descriptor."""
    _locks_held.discard(descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _unwritable(folder: Path, error: OSError) -> RecordError:
    return RecordError(
        f"{folder} cannot be written ({error.strerror or error}); the cells that are done are intact: make room, "
        "then run the same study again, and it goes on from there"
    )
