"""An index folder: one file of passages for each document, and a manifest that says which of them are in use.

    library.json          the manifest, replaced last and in one step
    passages/<key>.jsonl  a header line, then one line for each passage; the key is a digest of all that determines it
    lock, .gitignore      who is writing; keeps the folder out of the user's repository

A passage file never changes: another version of a document has another key. So a process that is killed leaves
the manifest and every file it names as they were, and what the manifest does not name is reused or swept away.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from docmind_lab.core.errors import ConfigurationError, RecordError

MANIFEST = "library.json"
PASSAGES = "passages"
LOCK = "lock"
IGNORE = ".gitignore"
SCHEMA_VERSION = 1

_OURS = frozenset({MANIFEST, PASSAGES, LOCK, IGNORE, f".{MANIFEST}.tmp", f".{IGNORE}.tmp"})
_PASSAGE_FILE = re.compile(r"\.?([0-9a-f]{32})\.jsonl(\.tmp)?")


@dataclass(frozen=True)
class StoreEntry:
    """The manifest's entry for a document.

    size, mtime_ns, ctime_ns: of the file when it was read; mtime_ns is None when it had changed so shortly before
    that its date cannot tell a later change. digest: of its bytes. reader: see `readers.reader_name`.
    passages: how many. problem: (reason, remedy) of a file that holds no text for us, and then it has no passages.
    """

    size: int
    mtime_ns: int | None
    ctime_ns: int
    digest: str
    reader: str
    passages: int = 0
    problem: tuple[str, str] | None = None

    def key(self, topic: str) -> str:
        """Return the name of the document's passage file."""
        parts = "\x1f".join((topic, self.digest, self.reader))
        return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """The documents of an index, by topic. complete: False after an interrupted run, which the next one finishes."""

    documents: Mapping[str, StoreEntry] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True)
class Passages:
    """One stored document. links: topics it may point to. passages: (section, text), in order."""

    topic: str
    links: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]


def prepare(folder: Path) -> None:
    """Make the index folder if needed. Raises: ConfigurationError if it holds other files or cannot be written."""
    with writing(folder):
        if folder.is_dir() and (others := sorted({entry.name for entry in folder.iterdir()} - _OURS)):
            raise ConfigurationError(
                f"--out {folder} holds other things, such as {others[0]!r}; choose a new or empty folder"
            )
        (folder / PASSAGES).mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Convert an operating system error to one line that names the index folder and the remedy."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(
            f"the index folder {folder} cannot be written ({reason}); choose another one with --out"
        ) from error


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of an index folder; None if there is none.

    Raises: RecordError naming the file and the remedy when it is damaged or another version wrote it.
    """
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["schema_version"]
        if version == SCHEMA_VERSION:
            documents = {str(topic): _entry(fields) for topic, fields in content["documents"].items()}
            return Manifest(documents, bool(content["complete"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{path} cannot be read ({type(error).__name__}); remove {folder} and index the documents again"
        ) from error
    raise RecordError(
        f"{path} has schema version {version!r}, and this docmind_lab reads version {SCHEMA_VERSION}; "
        f"upgrade docmind_lab, or remove {folder} and index the documents again"
    )


def _entry(fields: Mapping[str, Any]) -> StoreEntry:
    problem = fields.get("problem")
    return StoreEntry(**{**fields, "problem": None if problem is None else (str(problem[0]), str(problem[1]))})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which puts its documents into use. Equal manifests are equal files."""
    documents = {topic: asdict(entry) for topic, entry in sorted(manifest.documents.items())}
    content = {"schema_version": SCHEMA_VERSION, "complete": manifest.complete, "documents": documents}
    # The passage files' names must be on the disk before anything points to them.
    _flush_folder(folder / PASSAGES)
    _write_whole(folder / MANIFEST, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    _flush_folder(folder)


def write_ignore(folder: Path) -> None:
    """Make git ignore the index folder, so that copies of the user's text are not committed."""
    if not (folder / IGNORE).exists():
        _write_whole(folder / IGNORE, "*\n")


def passage_path(folder: Path, key: str) -> Path:
    """Return the path of the passage file with this key."""
    return folder / PASSAGES / f"{key}.jsonl"


def write_passages(folder: Path, key: str, stored: Passages) -> None:
    """Store a document; it is in use once a manifest names it."""
    header = {"topic": stored.topic, "links": list(stored.links), "passages": len(stored.passages)}
    lines: Sequence[Any] = (header, *({"section": section, "text": text} for section, text in stored.passages))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    _write_whole(passage_path(folder, key), text)


def read_passages(folder: Path, key: str) -> Passages:
    """Read a stored document. Raises: FileNotFoundError; RecordError for a damaged file."""
    path = passage_path(folder, key)
    try:
        header, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        passages = tuple((str(line["section"]), str(line["text"])) for line in lines)
        if len(passages) != header["passages"]:
            raise ValueError("another number of passages")
        return Passages(str(header["topic"]), tuple(map(str, header["links"])), passages)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{path} is damaged ({type(error).__name__}); remove it and index the documents again"
        ) from error


def sweep(folder: Path, manifest: Manifest) -> None:
    """Remove passage files that the manifest does not name, and temporary files of a killed run."""
    named = {entry.key(topic) for topic, entry in manifest.documents.items() if entry.problem is None}
    for path in (folder / PASSAGES).iterdir():
        match = _PASSAGE_FILE.fullmatch(path.name)
        if match and (match[2] or match[1] not in named):
            path.unlink(missing_ok=True)
    (folder / f".{MANIFEST}.tmp").unlink(missing_ok=True)


def _write_whole(path: Path, text: str) -> None:
    # One writer at a time holds the lock, so a fixed name will do, and a killed run leaves one file at most.
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock during a block. The system frees it when its holder ends, even if killed.

    The file stays, empty when no process holds it: removing it would let two processes lock two files of one name.
    Raises: ConfigurationError naming the process that holds it; OSError when the folder cannot be written.
    """
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # Empty for the instant between taking the lock and writing the number.
            number = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            holder = f"process {number}" if number.isdecimal() else "another process"
            raise ConfigurationError(
                f"the index folder {folder} is being written by {holder}; wait until it ends, or use another --out"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
