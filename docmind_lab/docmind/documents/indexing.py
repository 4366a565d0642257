"""Bring the index of a folder of documents up to date.

report = index_folder("papers")          # the index is in papers/.docmind
print(report)                            # 12 documents, 340 passages: 2 new, 1 changed, 9 unchanged, 0 removed
for problem in report.problems: print(problem)
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.docmind.documents import store
from docmind_lab.docmind.documents.document import UnreadableDocument
from docmind_lab.docmind.documents.folder import FoundFile, Problem, find_documents, linked_topics
from docmind_lab.docmind.documents.readers import read_document, reader_name, suffix_of
from docmind_lab.docmind.documents.store import Manifest, Passages, StoreEntry, locked

INDEX_FOLDER = ".docmind"
"""Where the index of a folder is if nothing else is said: inside it, hidden."""

MAX_FILE_BYTES = 50_000_000
"""Of one document: a larger one is data or a scan, and would take minutes of a parser's time."""

# A file that changes twice within one tick of its file system's clock keeps its date; FAT's tick is the longest.
_TICK_NS = 2_000_000_000


class IndexProgress(Protocol):
    """A function that is called with the progress of indexing."""

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Receive that `done` of `total` documents are finished; `name` is the next one's path, empty at the end."""


@dataclass(frozen=True)
class LibraryReport:
    """The result of indexing a folder.

    folder: the index folder. added, changed, unchanged, removed: topics, sorted; a document that became unreadable
    counts as removed. passages: in the whole index. problems: files that are not in it, by path.
    """

    folder: Path
    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    passages: int
    problems: tuple[Problem, ...]

    @property
    def documents(self) -> int:
        """Number of documents in the index."""
        return len(self.added) + len(self.changed) + len(self.unchanged)

    def __str__(self) -> str:
        kinds = (
            (self.added, "new"),
            (self.changed, "changed"),
            (self.unchanged, "unchanged"),
            (self.removed, "removed"),
        )
        counts = ", ".join(f"{len(topics)} {kind}" for topics, kind in kinds)
        return f"{self.documents} documents, {self.passages} passages: {counts}"


def index_folder(
    source_dir: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    progress: IndexProgress | None = None,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> LibraryReport:
    """Bring the index of a folder's .md, .txt, .rst, .html and .pdf files up to date, and report the changes.

    out: the index folder, `source_dir`/.docmind if left out; it mirrors one folder. A file whose size and dates are
    those it had is not opened; one with other dates but the same bytes is not parsed. The index is what a new one of
    the same files would be. A file that cannot be read becomes a problem in the report; the others are indexed.

    Killed at any instant, the index is what it was before; the next run goes on where this one ended. After a
    KeyboardInterrupt (it is raised again) the finished documents are in the index, which is marked incomplete.

    Raises: ConfigurationError for a folder that is missing, unreadable or without documents, an index folder that
    cannot be written, holds other things or is being written by another process; RecordError for an index that
    another version wrote. Each is one line with the name and the remedy, and nothing has changed then.
    """
    source = Path(source_dir)
    folder = Path(out) if out is not None else source / INDEX_FOLDER
    if folder.resolve() == source.resolve():
        raise ConfigurationError(f"--out {folder} is the folder of the documents; choose another one")
    found = find_documents(source, excluded=folder.resolve(), max_file_bytes=max_file_bytes)
    store.prepare(folder)
    with store.writing(folder), locked(folder):
        before = store.read_manifest(folder) or Manifest()
        store.write_ignore(folder)
        entries: dict[str, StoreEntry] = {}
        problems = list(found.problems)
        try:
            for done, file in enumerate(found.files):
                if progress is not None:
                    progress(done, len(found.files), file.path)
                try:
                    entries[file.topic] = _update_entry(folder, file, before.documents.get(file.topic))
                except _FileRefused as refused:
                    problems.append(refused.problem)
        except KeyboardInterrupt:
            store.write_manifest(folder, Manifest({**before.documents, **entries}, complete=False))
            raise
        after = Manifest(entries)
        if after != before or not (folder / store.MANIFEST).exists():
            store.write_manifest(folder, after)
        store.sweep(folder, after)
    if progress is not None:
        progress(len(found.files), len(found.files), "")
    paths = {file.topic: file.path for file in found.files}
    problems += [Problem(paths[topic], *entry.problem) for topic, entry in entries.items() if entry.problem]
    return _report(folder, before.documents, entries, problems)


class _FileRefused(Exception):
    """The operating system refused to read a document. It does not leave this module."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def _update_entry(folder: Path, file: FoundFile, known: StoreEntry | None) -> StoreEntry:
    """Return a document's entry and store its passages, with as little work as the known entry allows."""
    reader = reader_name(suffix_of(file.path))
    status = file.status
    dates = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if known is not None and (known.reader != reader or not _is_stored(folder, file.topic, known)):
        known = None
    if known is not None and (known.size, known.mtime_ns, known.ctime_ns) == dates:
        return known
    read_at_ns = time.time_ns()
    try:
        data = file.location.read_bytes()
    except OSError as error:
        reason = f"cannot be read ({error.strerror})"
        raise _FileRefused(Problem(file.path, reason, "check that it is there and its permissions")) from error
    entry = StoreEntry(
        # The dates from before reading: a change since then shows as other dates the next time.
        size=status.st_size,
        mtime_ns=status.st_mtime_ns if read_at_ns - status.st_mtime_ns > _TICK_NS else None,
        ctime_ns=status.st_ctime_ns,
        digest=hashlib.blake2b(data, digest_size=16).hexdigest(),
        reader=reader,
    )
    if known is not None and known.digest == entry.digest:
        return replace(entry, passages=known.passages, problem=known.problem)
    return _parse(folder, file, entry, data)


def _is_stored(folder: Path, topic: str, entry: StoreEntry) -> bool:
    return entry.problem is not None or store.passage_path(folder, entry.key(topic)).exists()


def _parse(folder: Path, file: FoundFile, entry: StoreEntry, data: bytes) -> StoreEntry:
    key = entry.key(file.topic)
    try:
        # A run that was killed may have come this far.
        return replace(entry, passages=len(store.read_passages(folder, key).passages))
    except (FileNotFoundError, RecordError):
        pass
    try:
        document = read_document(file.path, data)
        passages = document.passages(PurePosixPath(file.path).stem)
        if not passages:
            raise UnreadableDocument("holds no text", "write something in it, or remove it")
    except UnreadableDocument as error:
        return replace(entry, problem=(error.reason, error.remedy))
    stored = Passages(file.topic, linked_topics(file.path, document.links), passages)
    store.write_passages(folder, key, stored)
    return replace(entry, passages=len(passages))


def _report(
    folder: Path, before: Mapping[str, StoreEntry], after: Mapping[str, StoreEntry], problems: list[Problem]
) -> LibraryReport:
    old = {topic: entry.key(topic) for topic, entry in before.items() if entry.problem is None}
    new = {topic: entry.key(topic) for topic, entry in after.items() if entry.problem is None}
    kept = sorted(old.keys() & new.keys())
    return LibraryReport(
        folder=folder,
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(topic for topic in kept if old[topic] != new[topic]),
        unchanged=tuple(topic for topic in kept if old[topic] == new[topic]),
        removed=tuple(sorted(old.keys() - new.keys())),
        passages=sum(entry.passages for entry in after.values()),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )
