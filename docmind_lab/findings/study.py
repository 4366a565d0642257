"""A study: the three tables and the manifest that says how they were made, stored in a folder."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pkgutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from docmind_lab.core.errors import ConfigurationError, NoSuchRecord, RecordError
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.whole_files import Write, as_json, write_whole
from docmind_lab.findings.contrasts import contrasts
from docmind_lab.findings.finding import Finding
from docmind_lab.findings.recommendation import Recommendation, recommend
from docmind_lab.findings.scorecard import Scorecard, scorecard
from docmind_lab.findings.summary import FOREMOST, Summary, summarise
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.tables.frames import (
    UNREADABLE,
    ExtraTable,
    not_imported,
    parquet,
    read_parquet,
    to_frame,
    unreadable,
    with_dtypes,
)
from docmind_lab.tables.manifest import (
    check_table,
    checked_manifest,
    chosen_by,
    file_sha256,
    with_checksums,
    without_checksums,
)
from docmind_lab.tables.records import TABLES, RunRows

_DAMAGED = "; take the folder from a copy, or measure the study again into another folder"

# The work of a package that stands above. It is found by name when it is called, so that a study that is only read does
# not need the stack.
_EXTRA_TABLE: Final = "docmind_lab.systems.workload_by_name:extra_table"

MANIFEST, DESIGN, CELLS = "manifest.json", "design.json", "cells"


@dataclass(frozen=True, eq=False)
class Study:
    """The result of a comparison or sweep: three tables, and the manifest that says how they were made.

    Args:
        runs: One row per run; docs/data-dictionary.md describes the columns of all three.
        calls: One row per attempt and point of view.
        events: One row per event.
        manifest: Settings, versions, machine.
        trusted_kinds: Workloads of other packages that may be imported for their tables. None for all, as in a study
            that was made in this process.
    """

    runs: pd.DataFrame
    calls: pd.DataFrame
    events: pd.DataFrame
    manifest: Mapping[str, Any] = field(default_factory=dict)
    trusted_kinds: Collection[str] | None = None

    @classmethod
    def of(cls, measured: Iterable[RunRows], manifest: Mapping[str, Any]) -> Study:
        """Return the study of measured runs, ordered by their ids, whatever order they ended in.

        Args:
            measured: Rows of each run.
            manifest: Settings, versions, machine.
        """
        runs = sorted(measured, key=lambda item: item.run.run_id)
        return cls(
            runs=to_frame("runs", [item.run for item in runs]),
            calls=to_frame("calls", [call for item in runs for call in item.calls]),
            events=to_frame("events", [event for item in runs for event in item.events]),
            manifest=manifest,
        )

    def summary(self, *, all: bool = False) -> pd.DataFrame:  # noqa: A002 - what is asked for
        """Return the summary, one row per alternative: outcomes, overruns, and work after the deadline.

        Args:
            all: Return every column; else the twelve that say most, those of a condition that varies first.
        """
        summary = self._summary()
        return summary.table if all else summary.table[[*summary.apart, *FOREMOST][:12]]

    def _summary(self) -> Summary:
        return summarise(self.runs, self.manifest)

    def compare_to(self, reference: str = "A", **options: Any) -> pd.DataFrame:
        """Compare each arm with a reference, seed by seed, with intervals and corrected p values.

        Args:
            reference: A letter, level or variant ("A", "B:naive"), or an arm by its label.
            options: `measures` and `confidence` of `findings.contrasts`.

        Raises:
            ConfigurationError: A measure is unknown, or the reference is in no condition.
        """
        return contrasts(self.runs, reference, **options)

    def recommend(self, target: float = 0.95, confidence: float = 0.95) -> Recommendation:
        """Return, for each arm, the smallest decision timeout that surely has the target share answered in time.

        Args:
            target: Share of runs answered in time, above 0 and below 1.
            confidence: Confidence of the Wilson interval whose lower bound must reach the target.

        Raises:
            ConfigurationError: No arm enforces a deadline, a share is not between 0 and 1, or no run was finished.
        """
        if self.runs.empty:
            reasons = [str(cell["reason"]) for cell in self.manifest.get("failed_cells", [])]
            raise ConfigurationError(f"no run of this study was finished{''.join(f': {each}' for each in reasons[:1])}")
        # Only of a live endpoint: a large table of calls takes seconds to read.
        is_live = bool((self.runs["latency_profile"].astype("str") == "").any())
        calls = self.calls if is_live else None
        is_sweep = "factors" in self.manifest.get("design", {})
        result = recommend(self.runs, target, confidence, calls, chosen_by(self.runs, self.manifest), is_sweep)
        return dataclasses.replace(result, interrupted=self.interrupted)

    def scorecard(self) -> Scorecard:
        """Return ADR-056's decision table with Perf measured instead of judged: `findings.scorecard`.

        Raises:
            ConfigurationError: Fewer than two of its options were run, or the runs cannot be compared.
        """
        return scorecard(self.runs)

    @property
    def interrupted(self) -> str:
        """How many runs of how many are finished, in words, of a study that was interrupted; empty otherwise."""
        return str(self.manifest.get("interrupted", ""))

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The three tables by name."""
        return {name: getattr(self, name) for name in TABLES}

    def table(self, name: str) -> pd.DataFrame:
        """Return a further table that a workload of this study adds to the three; docs/data-dictionary.md describes it.

        Args:
            name: Name of the table, such as "sources" of research.

        Raises:
            ConfigurationError: There is no such table; the message names those there are.
        """
        extra: ExtraTable = pkgutil.resolve_name(_EXTRA_TABLE)(self._kinds(), name, self.trusted_kinds)
        return extra.derive(self.events, self.runs, self.calls)

    def _kinds(self) -> list[str]:
        """Return the workloads of the study, imported."""
        systems = self.manifest.get("systems", {})
        levels = [str(level) for level in self.runs["workload"].unique()]
        return [str(systems.get(level, {}).get("kind", level)) for level in levels]

    def _missing_tables(self) -> str:
        """Return a sentence about workloads whose tables are missing; "" if none is."""
        unknown = () if self.trusted_kinds is None else not_imported(self._kinds(), self.trusted_kinds)
        if not unknown:
            return ""
        return (
            f"{', '.join(unknown)} was not imported, so its own tables are not there; if you trust it: "
            f"Study.load(..., kinds={list(unknown)!r})"
        )

    def report(self) -> str:
        """Return table, one sentence for each alternative, and what to choose, as Markdown."""
        return self._summary().markdown()

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables and the manifest into a folder, each file atomically, the manifest last.

        Args:
            directory: The folder, made if need be.

        Raises:
            ConfigurationError: The folder cannot be written or holds a study already.
        """
        folder = prepare_folder(directory)
        for name, write in files_of(self.tables, self.manifest):
            write_whole(folder / name, write)
        return folder

    @classmethod
    def load(cls, directory: str | os.PathLike[str], *, kinds: Sequence[str] = ()) -> Study:
        """Read the study in a folder, or the finished part of one that was stopped.

        The events of a finished study, by far the most rows, are read when first used.

        Args:
            directory: The folder that the study was saved in.
            kinds: Workloads of other packages, each "module:ATTRIBUTE", whose modules may be imported for the tables
                of their own. A manifest is data: what it names is not imported otherwise.

        Raises:
            RecordError: There is no study, a table cannot be read, or a newer version wrote it.
        """
        folder = Path(directory)
        # Cells beside the tables of a finished study are what a killed process had no time to remove.
        design = None if is_finished(folder) else read_design(folder)
        if design is not None and (store := CellStore(folder / CELLS, str(design["study_id"]))).done():
            try:
                tables = store.read()
            except RecordError:
                if not is_finished(folder):  # by another process, while we read
                    raise
            else:
                written = without_checksums(_manifest_in(folder) or {})
                manifest = {"schema_version": SCHEMA_VERSION, **written, **design, "complete": False}
                return Study(tables.runs, tables.calls, tables.events, manifest, tuple(kinds))
        return _StudyInFolder.open_folder(folder, kinds)

    def __repr__(self) -> str:
        return self._as_shown().text_in_short("print(study.report())")

    def _repr_html_(self) -> str:
        return self._as_shown().html_in_short()

    def _as_shown(self) -> Finding:
        verdict, *words = self._summary().as_shown().words
        return Finding((verdict, *filter(None, [self._missing_tables()]), *words))


# In a list, so that it can be replaced.
_LAST: Final[list[Study]] = []


def remember(study: Study) -> Study:
    """Return the study, and let `last_study` return it from now on."""
    _LAST[:] = [study]
    return study


def last_study() -> Study:
    """Return the study of the last `compare`, `sweep` or `recommend` in this process, also of an interrupted one.

    Raises:
        ConfigurationError: There was none.
    """
    if not _LAST:
        raise ConfigurationError("no study was made in this process: dl.compare(…) makes one, Study.load(…) reads one")
    return _LAST[0]


class _StudyInFolder(Study):
    """A saved study whose events stay in their file until they are first used."""

    @classmethod
    def open_folder(cls, folder: Path, kinds: Sequence[str]) -> Study:
        """Open the study in a folder. Raises: RecordError for a file that is missing or cannot be read."""
        manifest, checksums = read_manifest(folder)
        if not (folder / "events.parquet").is_file():
            raise RecordError(f"{folder} holds no whole study: its events.parquet is not there")
        study = cls.__new__(cls)
        # Past the dataclass, which would want the events.
        study.__dict__.update(
            runs=_table(folder, "runs", checksums),
            calls=_table(folder, "calls", checksums),
            manifest=manifest,
            _folder=folder,
            _checksums=checksums,
            trusted_kinds=tuple(kinds),
        )
        return study

    @functools.cached_property
    def events(self) -> pd.DataFrame:
        """The table of events, read at first use. Raises: RecordError if it cannot be read any more."""
        return _table(self.__dict__["_folder"], "events", self.__dict__["_checksums"])


def read_manifest(folder: Path) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the manifest in a study's folder, and the checksums of its tables.

    Raises: RecordError if there is none, it was changed after it was written, or a newer version wrote it.
    """
    file = folder / MANIFEST
    try:
        text = file.read_text(encoding="utf-8")
        manifest = json.loads(text)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoSuchRecord(f"{folder} holds no study: it has no {MANIFEST}; name the folder of a study") from error
    except (OSError, ValueError) as error:
        raise unreadable(file, error, _DAMAGED) from error
    if not isinstance(manifest, dict):
        raise RecordError(f"{file} is not a JSON object{_DAMAGED}")
    if "schema_version" not in manifest:
        raise RecordError(f"{file} is not the manifest of a study{_DAMAGED}")
    version = manifest["schema_version"]
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RecordError(
            f"{file} was written with schema version {version}; this package reads up to {SCHEMA_VERSION}: upgrade "
            "docmind_lab"
        )
    return checked_manifest(file, text, _DAMAGED)


def table_in(folder: Path, name: str, checksums: Mapping[str, str]) -> pd.DataFrame:
    """Return a table in a study's folder, as it was written. Raises: RecordError if it is damaged, or was changed."""
    file = folder / f"{name}.parquet"
    check_table(file, checksums, _DAMAGED)
    return read_parquet(file, _DAMAGED)


def _table(folder: Path, name: str, checksums: Mapping[str, str]) -> pd.DataFrame:
    frame = table_in(folder, name, checksums)
    try:
        return with_dtypes(name, frame)
    except UNREADABLE as error:
        raise unreadable(folder / f"{name}.parquet", error, _DAMAGED) from error


def read_design(folder: Path) -> dict[str, Any] | None:
    """Return the content of `design.json`; None if there is none. Raises: RecordError if it cannot be read."""
    file = folder / DESIGN
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise unreadable(file, error, _DAMAGED) from error
    if not isinstance(known, dict) or not {"study_id", "design", "settings"} <= known.keys():
        raise RecordError(f"{file} is no study's design{_DAMAGED}")
    return known


def is_finished(folder: Path) -> bool:
    """Whether the tables of the study in a folder are written, with every cell in them."""
    return bool((_manifest_in(folder) or {}).get("complete"))


def _manifest_in(folder: Path) -> dict[str, Any] | None:
    """Return the manifest in a folder; None if there is none that can be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def files_of(tables: Mapping[str, pd.DataFrame], manifest: Mapping[str, Any]) -> Iterator[tuple[str, Write]]:
    """Return the files of a study's folder by name, each with the function that writes it; the manifest last.

    The manifest has checksums, so it is written after the tables.
    """
    checksums: dict[str, str] = {}

    def write_summed(path: str, name: str) -> None:
        parquet(tables[name])(path)
        checksums[f"{name}.parquet"] = file_sha256(path)

    for name in tables:
        yield f"{name}.parquet", functools.partial(write_summed, name=name)
    yield MANIFEST, lambda path: as_json(with_checksums(manifest, checksums))(path)


def prepare_folder(directory: str | os.PathLike[str]) -> Path:
    """Return the folder, created if missing, and checked to be writable and free of a study.

    Raises: ConfigurationError naming the folder and the remedy.
    """
    folder = require_writable(directory)
    # A design without a manifest is a study that is not finished: its cells are somebody's work.
    if (folder / MANIFEST).exists() or (folder / DESIGN).exists():
        raise ConfigurationError(f"--out {folder} holds a study already; choose another folder or remove it")
    return folder


def require_writable(directory: str | os.PathLike[str]) -> Path:
    """Return the folder, created if missing and checked to be writable. Raises: ConfigurationError naming it."""
    folder = Path(directory)
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"--out: the name {os.fsencode(folder)!r} is not UTF-8; choose another") from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Without a name, where the system can: whoever is killed here leaves nothing behind.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"--out {folder} cannot be written ({error.strerror}); choose another folder"
        ) from error
    return folder
