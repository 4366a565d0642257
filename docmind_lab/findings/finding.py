"""A finding: what it says in words, the numbers that they rest on, and the tables that show it.

    finding = Finding(("Arm A is late in 3 runs of 40.", ("Its worst run is run-7.",)), {"late": 3}, {"runs": frame})
    finding                     # text; in a notebook HTML
    finding.markdown()
    finding.as_json()           # {"sentences": [...], "late": 3, "runs": [...]}

Text, Markdown, HTML and JSON of every finding are written here.
"""

from __future__ import annotations

import abc
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd

from docmind_lab.core.alternative_catalogue import with_label
from docmind_lab.core.text import markdown_table


@dataclass(frozen=True)
class Paste:
    """A line to paste into a configuration or a program."""

    line: str


@dataclass(frozen=True)
class Code:
    """Lines of a program or a command, which are shown as they are."""

    lines: str


Block = str | tuple[str, ...] | pd.DataFrame | Paste | Code
"""A paragraph, a list, a table (a frame that is counted through has no index to show), a line to paste, or code."""


@dataclass(frozen=True, eq=False)
class Finding:
    """What a measurement shows.

    Args:
        words: What it says, from top to bottom: a title, then paragraphs, lists, tables and lines to paste.
        numbers: What the words rest on, by name, as JSON types.
        evidence: The tables that show it, by name; one row of each is one row of JSON.
    """

    words: tuple[Block, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The first of the words."""
        return str(self.words[0])

    @property
    def _below(self) -> list[Block]:
        """What stands under the title; a list without a line is left out."""
        return [block for block in self.words[1:] if not (isinstance(block, tuple) and not block)]

    @property
    def sentences(self) -> list[str]:
        """The paragraphs and the lines of the lists, without the title."""
        lists = (
            [block] if isinstance(block, str) else block for block in self.words[1:] if isinstance(block, str | tuple)
        )
        return [line for lines in lists for line in lines]

    def text(self, width: int | None = None) -> str:
        """Return the finding as plain text; an empty line follows each table.

        Args:
            width: Columns in which paragraphs and lists are wrapped; None for lines of any length.
        """
        lines = [line for block in (self.title, *self._below) for line in _text_lines(block, width)]
        return "\n".join(lines).rstrip("\n")

    def markdown(self) -> str:
        """Return the finding as Markdown."""
        return "\n\n".join([f"## {self.title}", *map(_markdown, self._below)]) + "\n"

    def html(self) -> str:
        """Return the finding as HTML; names of arms or nodes are escaped, so they are never markup."""
        return f"<p><b>{escape(self.title)}</b></p>" + "".join(map(_html, self._below))

    def as_json(self) -> dict[str, Any]:
        """Return sentences, numbers and rows by name, as JSON types but for numbers that are not finite."""
        rows = {name: frame.astype(object).to_dict("records") for name, frame in self.evidence.items()}
        return {"sentences": self.sentences, **self.numbers, **rows}

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


class MakesFinding(abc.ABC):
    """A result that is shown as its finding: in a terminal, in a notebook, as text and as Markdown."""

    @abc.abstractmethod
    def finding(self) -> Finding:
        """Return words, numbers and evidence of the result."""

    def text(self) -> str:
        """Return the finding as plain text."""
        return self.finding().text()

    def markdown(self) -> str:
        """Return the finding as Markdown."""
        return self.finding().markdown()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.finding().html()


def _text_lines(block: Block, width: int | None) -> Iterator[str]:
    if isinstance(block, pd.DataFrame):
        yield block.to_string(index=_has_names(block))
        yield ""
    elif isinstance(block, Paste):
        yield with_label(block.line)
    elif isinstance(block, Code):
        yield block.lines
    else:
        for line in [block] if isinstance(block, str) else (f"- {line}" for line in block):
            yield from [line] if width is None else _wrapped(line, width)


def _wrapped(line: str, width: int) -> list[str]:
    # Below the words, past a number or an instant before them.
    mark = re.match(r"\s*(?:- )?\s*(?:[\d.]+ +)?", line)
    indent = " " * (mark.end() if mark else 0)
    whole = textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line] if len(line) <= width else whole


def _markdown(block: Block) -> str:
    if isinstance(block, pd.DataFrame):
        table = block.rename_axis(index="").reset_index(allow_duplicates=True) if _has_names(block) else block
        return markdown_table([*map(str, table)], table.to_numpy())
    if isinstance(block, Paste):
        return f"```\n{block.line}\n```"
    if isinstance(block, Code):
        return f"```\n{block.lines}\n```"
    return block if isinstance(block, str) else "\n".join(f"- {line}" for line in block)


def _html(block: Block) -> str:
    if isinstance(block, pd.DataFrame):
        return block.to_html(index=_has_names(block), border=0)
    if isinstance(block, Paste):
        return f"<pre>{escape(block.line)}</pre>"
    if isinstance(block, Code):
        return f"<pre>{escape(block.lines)}</pre>"
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in block)}</ul>"


def _has_names(frame: pd.DataFrame) -> bool:
    return not isinstance(frame.index, pd.RangeIndex)
