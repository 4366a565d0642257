"""The documents of a folder: which files are read, in which order, why files are left out, and the documents' names.

A document's name is its topic: its path in the folder, made fit for a citation.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.documents.document import clean_text
from docmind_lab.docmind.documents.readers import SUFFIXES, suffix_of

MAX_FILE_BYTES = 50_000_000
"""Of one document: a larger one is data, and would take minutes to cut into passages."""

# What a citation such as [guide/setup.md#3] cannot hold, or what would make the name look like a path of the machine
# and be dropped from a result's metadata (see retrieval.results.clean_metadata).
_UNCITABLE = re.compile(r"[\s\[\],;#%:~\\\x00-\x1f\x7f-\x9f\udc80-\udcff]|[^\w.](?=/)")


def topic_of(path: str) -> str:
    """Return the topic of a file: its path relative to the folder, with forward slashes.

    Spaces, brackets and other characters that a citation cannot hold are percent-encoded, so that two files never
    share a topic: "my notes/a.md" is "my%20notes/a.md".
    """
    return _UNCITABLE.sub(lambda match: _percent_encode(match[0]), path.replace(os.sep, "/"))


def _percent_encode(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def linked_topics(path: str, links: Iterable[str]) -> tuple[str, ...]:
    """Return the topics that a file's links may mean, in order, each once, except itself; they need not exist.

    Only relative addresses count. One that leaves the folder leads nowhere.
    """
    found: dict[str, None] = {}
    for link in links:
        try:
            address = urlsplit(clean_text(link).strip())
        except ValueError:  # a malformed address, such as http://[
            continue
        if address.scheme or address.netloc or not address.path or address.path.startswith("/"):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address.path)))
        if not target.startswith("../") and target not in ("..", ".", path):
            found[topic_of(target)] = None
    return tuple(found)


def resolve_link(target: str, known: Container[str]) -> str | None:
    """Return the known topic that a link means, with or without a suffix, as wikis write links; None if none."""
    return next((topic for topic in (target, *(target + suffix for suffix in SUFFIXES)) if topic in known), None)


@dataclass(frozen=True)
class Problem:
    """Why a file is not in the library.

    path: relative to the folder. reason: completes the sentence that begins with the path. remedy: what to do.
    """

    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        # A file's name may hold what is no text (os.fsdecode's surrogates), or a line end.
        path = self.path.encode("utf-8", "replace").decode()
        return f"{path if path.isprintable() else repr(path)} {self.reason}: {self.remedy}"


@dataclass(frozen=True)
class FoundFile:
    """A document found in the folder. path: relative to the folder. location: where to open it."""

    topic: str
    path: str
    location: Path


@dataclass(frozen=True)
class FoundFiles:
    """The documents found, by topic, and the problems with files that were left out."""

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]


def find_documents(source: Path) -> FoundFiles:
    """Find the folder's documents, in the order of their topics, however the file system lists them.

    Left out without a word: hidden files and folders, other suffixes, links to folders inside.
    Left out as problems: links that leave the folder, files above `MAX_FILE_BYTES`, what is not a file at all, and
    files whose status cannot be read.

    Raises: ConfigurationError when there is no such folder, it cannot be read, or it holds no document.
    """
    if not source.is_dir():
        what = "is a file; name the folder it is in" if source.exists() else "does not exist; check the path"
        raise ConfigurationError(f"{source} {what}")
    root = source.resolve()
    files: list[FoundFile] = []
    problems: list[Problem] = []
    unlisted: list[OSError] = []
    for folder, folders, names in os.walk(source, onerror=unlisted.append):
        here = Path(folder)
        shown = [name for name in folders if not name.startswith(".")]
        folders[:] = [name for name in shown if not (here / name).is_symlink()]
        for name in set(shown) - set(folders):
            if not (here / name).resolve().is_relative_to(root):
                problems.append(_leaving_link(_relative(here / name, source)))
        for name in names:
            if name.startswith(".") or suffix_of(name) not in SUFFIXES:
                continue
            found = _inspect(here / name, source, root)
            if isinstance(found, FoundFile):
                files.append(found)
            else:
                problems.append(found)
    for error in unlisted:
        if os.fspath(error.filename) == os.fspath(source):
            raise ConfigurationError(f"{source} cannot be read ({error.strerror}); check its permissions") from error
        problems.append(_unreadable(_relative(Path(error.filename), source), error))
    if not files and not problems:
        raise ConfigurationError(
            f"{source} holds no document; the kinds that are read are {', '.join(SUFFIXES)} (others: documents_corpus)"
        )
    return FoundFiles(
        files=tuple(sorted(files, key=lambda file: file.topic)),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )


def _inspect(location: Path, source: Path, root: Path) -> FoundFile | Problem:
    path = _relative(location, source)
    try:
        if location.is_symlink() and not location.resolve(strict=True).is_relative_to(root):
            return _leaving_link(path)
        status = location.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself, in Python up to 3.12
        return _unreadable(path, error)
    if not stat.S_ISREG(status.st_mode):
        return Problem(path, "is not a file", "move it out of the folder")
    if status.st_size > MAX_FILE_BYTES:
        limit, size = MAX_FILE_BYTES / 1e6, status.st_size / 1e6
        return Problem(path, f"has {size:.4g} MB, and the limit is {limit:g} MB", "split it")
    return FoundFile(topic_of(path), path, location)


def _relative(location: Path, source: Path) -> str:
    return location.relative_to(source).as_posix()


def _leaving_link(path: str) -> Problem:
    return Problem(path, "is a link that leaves the folder", "copy what it points to into the folder")


def _unreadable(path: str, error: OSError | RuntimeError) -> Problem:
    reason = getattr(error, "strerror", None) or "it is a link to itself"
    return Problem(path, f"cannot be read ({reason})", "check that it is there and its permissions")
