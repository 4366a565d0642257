"""The documents of a folder: which files are read and how, why a file cannot be, and the documents' names.

A document's name is its topic: its path in the folder, made fit for a citation. Text and Markdown are read; other kinds
are loaded by LangChain's loaders.

document = read_document("guide/setup.md", data)    # UnreadableDocument says why not
document.passages("setup")                          # (section, text) of each passage, in order
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.corpus import CHUNK_CHARACTERS, split_text

SUFFIXES = (".md", ".txt")
"""Of the files that are read, in lower case; a file's own may be in any."""

# Front matter is not CommonMark: its last line would turn the one above it into a heading.
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n((?:\w[\w-]*[ \t]*:.*\n|[ \t#-].*\n|\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")

MAXIMUM_HEADING_CHARACTERS = 200
"""Maximum length of a heading, which is repeated with every passage below it; the rest is cut off."""

# Form feeds, escape codes and the like; a lone surrogate cannot be encoded at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_WIDE_GAP = re.compile(r"\n{4,}")
_NEW_LINES = re.compile(r"\r\n|[\r\x85\u2028\u2029]")


class UnreadableDocument(Exception):
    """A file cannot be read as a document. reason: completes "guide.md …", such as "is not text"."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True)
class Document:
    """The content of a file. sections: (headings, body) in order, headings outermost first. links: as written."""

    sections: tuple[tuple[tuple[str, ...], str], ...]
    links: tuple[str, ...] = ()

    def passages(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return (section, text) of each passage, in order. name: heading for text that has none.

        Cut as `corpus.split_text` cuts; a single word longer than a chunk is cut inside, for a file may hold an image
        as one word of a million letters.
        """
        pieces: list[tuple[str, str]] = []
        for headings, body in self.sections:
            section = " > ".join(filter(None, map(_heading, headings))) or name
            for piece in split_text(_without_wide_gaps(clean_text(body))):
                cuts = range(0, len(piece), CHUNK_CHARACTERS)
                pieces += [(section, piece[at : at + CHUNK_CHARACTERS]) for at in cuts]
        return tuple((section, text) for section, text in pieces if text.strip())


def clean_text(text: str) -> str:
    """Return the text with line feeds only, without control characters and lone surrogates."""
    return _UNPRINTABLE.sub("", _NEW_LINES.sub("\n", text))


def _without_wide_gaps(text: str) -> str:
    """Return the text with at most two blank lines in a row: `split_text` costs the square of a gap's length."""
    return _WIDE_GAP.sub("\n\n\n", "\n".join(line.rstrip() for line in text.split("\n")))


def _heading(text: str) -> str:
    return " ".join(clean_text(text).split())[:MAXIMUM_HEADING_CHARACTERS].rstrip()


def suffix_of(name: str) -> str:
    """Return the suffix of a file's name, which selects the reader."""
    return PurePosixPath(name).suffix.lower()


def read_document(name: str, data: bytes) -> Document:
    """Read a file with the reader for its suffix. Raises: UnreadableDocument for bytes that are not text."""
    return read_markdown(data) if suffix_of(name) == ".md" else Document(sections=(((), decode(data)),))


def decode(data: bytes) -> str:
    """Decode a file's text, which is UTF-8, with or without its mark. Raises: UnreadableDocument for anything else."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDocument(
            f"is not UTF-8 text (byte {error.start})", "save it as UTF-8, or move it out of the folder"
        ) from error
    if "\0" in text:
        raise UnreadableDocument("is not text", "save it as UTF-8 text, or move it out of the folder")
    return text


def read_markdown(data: bytes) -> Document:
    """Read sections by headings outside of quotes, lists and code, and link addresses. Raises: UnreadableDocument."""
    text = clean_text(decode(data))
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    lines = body.split("\n")
    levels: list[tuple[int, str]] = []
    start = 0
    sections: list[tuple[tuple[str, ...], str]] = [((), front[1])] if front else []
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            sections.append((tuple(text for _, text in levels), "\n".join(lines[start : token.map[0]])))
            level = int(token.tag[1:])
            levels = [(above, text) for above, text in levels if above < level] + [(level, _plain(tokens[at + 1]))]
            start = token.map[1]
    sections.append((tuple(text for _, text in levels), "\n".join(lines[start:])))
    return Document(sections=tuple(sections), links=tuple(_links(tokens)))


def _plain(inline: Token) -> str:
    types = ("text", "code_inline", "softbreak", "image")
    return "".join(child.content or " " for child in inline.children or () if child.type in types)


def _links(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])


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
