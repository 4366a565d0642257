"""A document: the sections and links of a file, and how they are cut into passages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from docmind_lab.docmind.retrieval.corpus import CHUNK_CHARACTERS, split_text

MAXIMUM_HEADING_CHARACTERS = 200
"""Maximum length of a heading, which is repeated with every passage below it; the rest is cut off."""

_REASON_CHARACTERS = 160

# Form feeds, escape codes and the like; a lone surrogate, which PDFs can yield, cannot be encoded at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_WIDE_GAP = re.compile(r"\n{4,}")
_NEW_LINES = re.compile(r"\r\n|[\r\x85\u2028\u2029]")


class UnreadableDocument(Exception):
    """A file has no text that can be read. It never leaves the package: reports list it as a `Problem`.

    reason: completes "guide.pdf …", such as "is encrypted". remedy: what to do about it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        # A parser's own words may be in it: they are kept to one line that can be stored.
        self.reason, self.remedy = " ".join(clean_text(reason).split())[:_REASON_CHARACTERS], remedy


@dataclass(frozen=True)
class Document:
    """The content of a file as its reader found it.

    sections: (headings, body) in order; headings outermost first. links: addresses as the document writes them.
    """

    sections: tuple[tuple[tuple[str, ...], str], ...]
    links: tuple[str, ...] = ()

    def passages(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return (section, text) of each passage, in order. name: heading for text that has none.

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


@dataclass(frozen=True)
class Passages:
    """One document of a library. links: topics it may point to. passages: (section, text), in order."""

    topic: str
    links: tuple[str, ...]
    passages: tuple[tuple[str, str], ...]


class Outline:
    """The headings that apply to the text being read.

    outline.enter(1, "Deadlines"); outline.enter(2, "Caps")   # headings: ("Deadlines", "Caps")
    """

    def __init__(self, title: str = "") -> None:
        # The title of the page stands until its first heading of level 1, which nearly always repeats it.
        self._levels: list[tuple[int, str]] = [(1, title)] if title else []

    def enter(self, level: int, heading: str) -> None:
        """Begin a section at this level; 1 is the outermost."""
        self._levels = [(above, text) for above, text in self._levels if above < level] + [(level, heading)]

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings that apply, outermost first."""
        return tuple(text for _, text in self._levels)


def clean_text(text: str) -> str:
    """Return the text with line feeds only, without control characters and lone surrogates."""
    return _UNPRINTABLE.sub("", _NEW_LINES.sub("\n", text))


def _without_wide_gaps(text: str) -> str:
    """Return the text without white space at line ends, and with at most two blank lines in a row.

    `split_text` looks for its cuts with a search whose cost is the square of a gap's length.
    """
    return _WIDE_GAP.sub("\n\n\n", "\n".join(line.rstrip() for line in text.split("\n")))


def _heading(text: str) -> str:
    return " ".join(clean_text(text).split())[:MAXIMUM_HEADING_CHARACTERS].rstrip()
