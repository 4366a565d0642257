"""The documents of a folder: which files are read, why a file cannot be, and the documents' names.

A document's name is its topic: its path in the folder, made fit for a citation.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Container, Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.documents.readers import SUFFIXES, UnreadableDocument, clean_text, suffix_of

MAX_FILE_BYTES = 50_000_000
"""Of one document: a larger one is data, and would take minutes to cut into passages."""

# What a citation such as [guide/setup.md#3] cannot hold, or what would make the name look like a path of the machine
# and be dropped from a result's metadata (see results.clean_metadata).
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
    """Return the topics that a file's relative links may mean, each once, without itself; they need not exist."""
    topics: dict[str, None] = {}
    for link in links:
        try:
            address = urlsplit(clean_text(link).strip())
        except ValueError:  # a malformed address, such as http://[
            continue
        if address.scheme or address.netloc or not address.path or address.path.startswith("/"):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address.path)))
        if not target.startswith("../") and target not in ("..", ".", path):
            topics[topic_of(target)] = None
    return tuple(topics)


def resolve_link(target: str, topics: Container[str]) -> str | None:
    """Return the known topic that a link means, with or without a suffix, as wikis write links; None if none."""
    return next((topic for topic in (target, *(target + suffix for suffix in SUFFIXES)) if topic in topics), None)


def find_documents(source: Path) -> tuple[list[str], dict[str, UnreadableDocument]]:
    """Return the documents of a folder and what cannot be read there, by paths relative to the folder.

    Left out without a word: hidden files and folders, other suffixes, links to folders inside. What cannot be read:
    links that leave the folder, files above `MAX_FILE_BYTES`, what is not a file at all, and files without a status.

    Raises: ConfigurationError when there is no such folder, it cannot be read, or it holds no document.
    """
    if not source.is_dir():
        what = "is a file; name the folder it is in" if source.exists() else "does not exist; check the path"
        raise ConfigurationError(f"{source} {what}")
    root = source.resolve()
    files: list[str] = []
    problems: dict[str, UnreadableDocument] = {}
    unlisted: list[OSError] = []
    for folder, folders, names in os.walk(source, onerror=unlisted.append):
        here = Path(folder)
        visible = [name for name in folders if not name.startswith(".")]
        folders[:] = [name for name in visible if not (here / name).is_symlink()]
        links = [name for name in visible if name not in folders and not (here / name).resolve().is_relative_to(root)]
        documents = [name for name in names if not name.startswith(".") and suffix_of(name) in SUFFIXES]
        for name in (*links, *documents):
            path = (here / name).relative_to(source).as_posix()
            try:
                _check(here / name, root)
                files.append(path)
            except UnreadableDocument as problem:
                problems[path] = problem
    for error in unlisted:
        if os.fspath(error.filename) == os.fspath(source):
            raise ConfigurationError(f"{source} cannot be read ({error.strerror}); check its permissions") from error
        problems[Path(error.filename).relative_to(source).as_posix()] = unreadable(error)
    if not files and not problems:
        raise ConfigurationError(
            f"{source} holds no document; the kinds that are read are {', '.join(SUFFIXES)}; others are for "
            "library_of_documents"
        )
    return files, problems


def _check(location: Path, root: Path) -> None:
    """Raise UnreadableDocument for what is no document of the folder."""
    try:
        leaves = location.is_symlink() and not location.resolve(strict=True).is_relative_to(root)
        status = location.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself, in Python up to 3.12
        raise unreadable(error) from error
    if leaves:
        raise UnreadableDocument("is a link that leaves the folder", "copy what it points to into the folder")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableDocument("is not a file", "move it out of the folder")
    if status.st_size > MAX_FILE_BYTES:
        limit, size = MAX_FILE_BYTES / 1e6, status.st_size / 1e6
        raise UnreadableDocument(f"has {size:.4g} MB, and the limit is {limit:g} MB", "split it")


def unreadable(error: OSError | RuntimeError) -> UnreadableDocument:
    """Return the error of the system as that of a document."""
    reason = getattr(error, "strerror", None) or "it is a link to itself"
    return UnreadableDocument(f"cannot be read ({reason})", "check that it is there and its permissions")
