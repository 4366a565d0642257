"""The documents that are searched: pages cut into chunks, such as Python's language reference.

    load_language_reference()
    # (Chunk(id="break#1", topic="break", section='The "break" statement', text='"break" may only …'), …)
    topic_references("with")
    # ("context-managers", "exceptions", "yield")

The reference is `pydoc_data.topics`, the text behind `help("with")`: about eighty pages that overlap, because the
page of a chapter repeats the pages of its parts. A section is kept once, on the shortest page that has it, so that
one passage never fills several ranks of a result and a question has one right topic for it. The text differs
between Python versions; what must be equal across them uses another corpus. Everything else in this package takes
a tuple of `Chunk`, wherever that came from.
"""

from __future__ import annotations

import functools
import pydoc
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pydoc_data.topics import topics as reference_pages
from types import MappingProxyType

CHUNK_CHARACTERS = 1_200
"""Upper size of a chunk: about 250 tokens, so that five of them and a question fit a small model's context."""

_UNDERLINE = re.compile(r"([*=\-~^.\"+])\1{2,}")
_FOOTNOTES = "-[ Footnotes ]-"
_BLANK_LINES = r"\n(?:[ \t]*\n)+"

# From the coarsest cut to the finest: each is tried only where the one before left a piece that is too long. The
# first keeps a definition with its indented body, and a code block with the sentence that introduces it.
_CUTS = (
    (re.compile(_BLANK_LINES + r"(?=\S)"), "\n\n"),
    (re.compile(_BLANK_LINES), "\n\n"),
    (re.compile(r"\n"), "\n"),
    (re.compile(r" +"), " "),
)


@dataclass(frozen=True)
class Chunk:
    """One passage of a document: the unit that is indexed, retrieved and cited.

    id: "topic#ordinal", 1-based within the topic, stable for a given text. topic: the page. section: the headings
    above the passage, outermost first, joined with " > ". text: the passage itself, line breaks kept.
    """

    id: str
    topic: str
    section: str
    text: str

    @property
    def searchable(self) -> str:
        """The text that encoders see: headings and passage, since a passage seldom repeats its subject."""
        return f"{self.section}\n{self.text}"


def split_text(text: str, limit: int = CHUNK_CHARACTERS) -> tuple[str, ...]:
    """Split the `text` into pieces of at most `limit` characters, in order, as few as greedy packing gives.

    Cuts fall between paragraphs; inside one only where it alone is longer than the limit, at a line end or, failing
    that, between words. A single word longer than the limit stays whole. Blank text has no pieces.
    """
    stripped = text.strip("\n").rstrip()
    return tuple(_pack(stripped, limit, _CUTS)) if stripped else ()


def _pack(text: str, limit: int, cuts: Sequence[tuple[re.Pattern[str], str]]) -> list[str]:
    if len(text) <= limit or not cuts:
        return [text]
    pattern, joint = cuts[0]
    packed: list[str] = []
    for part in pattern.split(text):
        for piece in _pack(part, limit, cuts[1:]):
            if packed and len(packed[-1]) + len(joint) + len(piece) <= limit:
                packed[-1] += joint + piece
            else:
                packed.append(piece)
    return packed


def page_sections(page: str) -> tuple[tuple[str, str], ...]:
    """Return (headings, body) of each section with a body, in page order.

    A heading is a line above an underline of one repeated character that is at least as long. The first character
    met is the outermost level, as in reStructuredText.
    """
    return tuple((" > ".join(headings), body) for headings, body in _walk_sections(page) if body)


def _walk_sections(page: str) -> Iterator[tuple[tuple[str, ...], str]]:
    lines = page.strip("\n").split("\n")
    levels: list[str] = []
    headings: tuple[str, ...] = ()
    body: list[str] = []
    at = 0
    while at < len(lines):
        line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        if line == _FOOTNOTES:
            yield headings, "\n".join(body).strip("\n")
            headings, body, at = (*headings[:1], "Footnotes"), [], at + 1
        elif line[:1].strip() and _UNDERLINE.fullmatch(below) and len(below) >= len(line):
            yield headings, "\n".join(body).strip("\n")
            if below[0] not in levels:
                levels.append(below[0])
            headings, body, at = (*headings[: levels.index(below[0])], line), [], at + 2
        else:
            body.append(line)
            at += 1
    yield headings, "\n".join(body).strip("\n")


def chunk_pages(pages: Mapping[str, str], *, limit: int = CHUNK_CHARACTERS) -> tuple[Chunk, ...]:
    """Cut all pages (topic → text) into chunks, ordered by topic and then as on the page.

    A section that several pages hold, word for word, is kept on the shortest of them; of two equal pages the one
    whose name comes first in the text keeps it. A page made only of such sections has no chunk of its own.
    """
    owners: dict[str, str] = {}
    for topic in sorted(pages, key=lambda name: (len(pages[name]), _position_of_name(pages[name], name), name)):
        for _, body in page_sections(pages[topic]):
            owners.setdefault(" ".join(body.split()), topic)
    chunks: list[Chunk] = []
    for topic in sorted(pages):
        passages: list[tuple[str, str]] = []
        for section, body in page_sections(pages[topic]):
            if owners.get(" ".join(body.split())) == topic:
                del owners[" ".join(body.split())]
                passages += [(section, text) for text in split_text(body, limit)]
        chunks += [
            Chunk(id=f"{topic}#{ordinal}", topic=topic, section=section, text=text)
            for ordinal, (section, text) in enumerate(passages, start=1)
        ]
    return tuple(chunks)


def _position_of_name(page: str, name: str) -> int:
    position = page.find(name)
    return position if position >= 0 else len(page)


@functools.cache
def load_language_reference() -> tuple[Chunk, ...]:
    """Load the running Python's language reference: a few hundred chunks, the same object on every call.

    Source: `pydoc_data.topics` of the standard library. Topics are pydoc's own names, such as "with" or "naming".
    """
    return chunk_pages(reference_pages)


def topic_references(topic: str) -> tuple[str, ...]:
    """Return the topics that the page of `topic` points to, in pydoc's order, each once, without itself.

    Source: the tables behind "Related help topics" (`pydoc.Helper.topics` and `.keywords`). Names there that are
    modules or built-ins, and topics without a chunk in the language reference, are left out. A topic that the
    tables do not know has no references.
    """
    known = {chunk.topic for chunk in load_language_reference()}
    tables = {**pydoc.Helper.topics, **pydoc.Helper.keywords}
    found: list[str] = []
    for entry in tables.values():
        if isinstance(entry, tuple) and entry[0] == topic:
            targets = (_page_behind(name, tables) for name in entry[1].split())
            found += [target for target in targets if target in known and target != topic]
    return tuple(dict.fromkeys(found))


@functools.cache
def language_references() -> Mapping[str, tuple[str, ...]]:
    """Return topic → `topic_references` for every topic that has any, as `SearchIndex` takes them."""
    topics = sorted({chunk.topic for chunk in load_language_reference()})
    found = {topic: topic_references(topic) for topic in topics}
    return MappingProxyType({topic: references for topic, references in found.items() if references})


def _page_behind(name: str, tables: Mapping[str, str | tuple[str, ...]]) -> str:
    entry = tables.get(name, "")
    while isinstance(entry, str) and entry:
        entry = tables.get(entry, "")
    return entry[0] if entry else ""
