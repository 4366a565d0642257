"""A file as a document: sections and links, how they become passages, and which reader reads which suffix.

    read_document("guide/setup.md", data)    # Document, or UnreadableDocument says why not

A reader (text_files, markdown_files, html_files, pdf_files) takes bytes and returns a `Document`, or raises
`UnreadableDocument` with the reason and the remedy. It knows neither the file's name nor its place.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from docmind_lab.docmind.retrieval.corpus import CHUNK_CHARACTERS, split_text

MAXIMUM_HEADING_CHARACTERS = 200
"""A heading is repeated with every passage below it; what is longer is a paragraph in a heading's clothes."""

_REASON_CHARACTERS = 160

# Form feeds, escape codes and the like; a lone surrogate, which PDFs can yield, cannot be encoded at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_WIDE_GAP = re.compile(r"\n{4,}")
_NEW_LINES = re.compile(r"\r\n|[\r\x85\u2028\u2029]")


class UnreadableDocument(Exception):
    """A file that holds no text for us. It never leaves the package: the report has it as a `Problem`.

    reason: completes "guide.pdf …", such as "is encrypted". remedy: what to do about it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        # A parser's own words may be in it: they are kept to one line that can be stored.
        self.reason, self.remedy = " ".join(clean_text(reason).split())[:_REASON_CHARACTERS], remedy


@dataclass(frozen=True)
class Document:
    """What a reader found in a file.

    sections: (headings, body) in order; headings outermost first. links: addresses as the document writes them.
    """

    sections: tuple[tuple[tuple[str, ...], str], ...]
    links: tuple[str, ...] = ()

    def passages(self, name: str) -> tuple[tuple[str, str], ...]:
        """(section, text) of each chunk to be, in order. name: stands in for the heading of text without one.

        Cut as `corpus.split_text` cuts; a single word longer than a chunk is cut inside, for a file may hold an image
        as one word of a million letters.
        """
        found: list[tuple[str, str]] = []
        for headings, body in self.sections:
            section = " > ".join(filter(None, map(_heading, headings))) or name
            for piece in split_text(_without_wide_gaps(clean_text(body))):
                cuts = range(0, len(piece), CHUNK_CHARACTERS)
                found += [(section, piece[at : at + CHUNK_CHARACTERS]) for at in cuts]
        return tuple((section, text) for section, text in found if text.strip())


class Outline:
    """The headings above the text being read.

    outline.enter(1, "Deadlines"); outline.enter(2, "Caps")   # headings: ("Deadlines", "Caps")
    """

    def __init__(self, title: str = "") -> None:
        # The title of the page stands until its first heading of level 1, which nearly always repeats it.
        self._levels: list[tuple[int, str]] = [(1, title)] if title else []

    def enter(self, level: int, heading: str) -> None:
        """Begin a section; level 1 is the outermost."""
        self._levels = [(above, text) for above, text in self._levels if above < level] + [(level, heading)]

    @property
    def headings(self) -> tuple[str, ...]:
        """Outermost first."""
        return tuple(text for _, text in self._levels)


def clean_text(text: str) -> str:
    """The text with line feeds only, and without control characters and lone surrogates."""
    return _UNPRINTABLE.sub("", _NEW_LINES.sub("\n", text))


def _without_wide_gaps(text: str) -> str:
    """The text without white space at line ends and with at most two blank lines in a row.

    `split_text` looks for its cuts with a search whose cost is the square of a gap's length.
    """
    return _WIDE_GAP.sub("\n\n\n", "\n".join(line.rstrip() for line in text.split("\n")))


def _heading(text: str) -> str:
    return " ".join(clean_text(text).split())[:MAXIMUM_HEADING_CHARACTERS].rstrip()


SUFFIXES = (".html", ".md", ".pdf", ".rst", ".txt")
"""Of the files that are read, in lower case; a file's own may be in any."""

READER_VERSION = 1
"""To be raised with every change of what a reader makes of a file, so that indexed files are read again."""

_LIBRARIES = {".html": "beautifulsoup4", ".md": "markdown-it-py", ".pdf": "pypdf"}


def suffix_of(name: str) -> str:
    """The suffix that decides on the reader."""
    return PurePosixPath(name).suffix.lower()


@functools.cache
def reader_name(suffix: str) -> str:
    """What determines the chunks of a file besides its bytes: our version, the chunks' size, the library's version."""
    library = _LIBRARIES.get(suffix)
    parts = [suffix.lstrip("."), str(READER_VERSION), str(CHUNK_CHARACTERS)]
    return "/".join(parts + ([f"{library} {importlib.metadata.version(library)}"] if library else []))


def read_document(name: str, data: bytes) -> Document:
    """What the file says; its suffix decides how it is read. Raises: UnreadableDocument, and nothing else."""
    try:
        return _reader(suffix_of(name))(data)
    except UnreadableDocument:
        raise
    except Exception as error:
        # A parser fails in many ways on a broken file, and one file must not end the run for the others.
        raise UnreadableDocument(
            f"cannot be read as {suffix_of(name)} ({type(error).__name__})", "open it, mend it and save it again"
        ) from error


def _reader(suffix: str) -> Callable[[bytes], Document]:
    # Function-level: each parser takes a tenth of a second to import, and most folders need one of them.
    if suffix == ".pdf":
        from docmind_lab.docmind.documents.pdf_files import read_pdf  # noqa: PLC0415 - as above

        return read_pdf
    if suffix == ".html":
        from docmind_lab.docmind.documents.html_files import read_html  # noqa: PLC0415 - as above

        return read_html
    if suffix == ".md":
        from docmind_lab.docmind.documents.markdown_files import read_markdown  # noqa: PLC0415 - as above

        return read_markdown
    from docmind_lab.docmind.documents.text_files import read_rst, read_text  # noqa: PLC0415 - beside the others

    return read_rst if suffix == ".rst" else read_text
