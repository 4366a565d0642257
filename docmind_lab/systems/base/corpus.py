"""Passages: the unit that is indexed, retrieved and cited, and where a text is cut into them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HANDBOOK = "handbook"
"""Name of the corpus that comes with the lab: twelve pages, and a question to each."""

CHUNK_CHARACTERS = 1_200
"""Upper size of a chunk: about 250 tokens, so that five of them and a question fit a small model's context."""

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
