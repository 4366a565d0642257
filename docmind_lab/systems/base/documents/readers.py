"""The readers of documents: text and Markdown. Other kinds are loaded by LangChain's loaders.

document = read_document("guide/setup.md", data)    # UnreadableDocument says why not
document.passages("setup")                          # (section, text) of each passage, in order
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
