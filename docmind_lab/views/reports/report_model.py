"""The parts of a report: sections of sentences, facts, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

# A table that is longer stands folded under its caption: it is there to be looked up, not to be read.
LONGEST_OPEN = 16


@dataclass(frozen=True)
class Prose:
    """Sentences: paragraphs, a list, lines to paste, or a heading within a section."""

    lines: tuple[str, ...]
    kind: Literal["paragraphs", "list", "code", "heading"] = "paragraphs"


@dataclass(frozen=True)
class Facts:
    """Named facts of a report, in order."""

    items: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Table:
    """A table with its caption.

    shown: cells as text, headings with units; the first column names the row. left: headings of the other columns that
    are words and not numbers. is_main: what the section is there for, and so never folded.
    """

    caption: str
    shown: pd.DataFrame
    left: frozenset[str] = frozenset()
    is_main: bool = False

    @property
    def is_long(self) -> bool:
        """Whether the table is folded."""
        return not self.is_main and len(self.shown) > LONGEST_OPEN


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawn figure, a PNG. alt: a description for readers who cannot see it. tables: its numbers."""

    title: str
    alt: str
    png: bytes
    tables: tuple[Table, ...] = ()


Block = Prose | Facts | Table | Figure


@dataclass(frozen=True)
class Section:
    """A part of a report under its heading. name: unique in the report, fit for a link."""

    name: str
    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Report:
    """A report of a study.

    title: description of what was measured, in a line. complete: whether all of its runs are there.
    """

    title: str
    study_id: str
    complete: bool
    sections: tuple[Section, ...]
