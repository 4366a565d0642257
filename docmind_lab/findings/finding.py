"""A finding: what it says in words, the numbers that they rest on, and the tables that show it.

    finding = Finding(("Arm A is late in 3 runs of 40.", ("Its worst run is run-7.",)), {"late": 3}, {"runs": frame})
    finding                     # text; in a notebook HTML
    finding.markdown()
    finding.as_json()           # {"sentences": [...], "late": 3, "runs": [...]}

Text, Markdown, HTML and JSON of every finding are written here.
"""

from __future__ import annotations

import abc
import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd

from docmind_lab.core.shown import COLUMNS, LINES, PAGE_COLUMNS, PAGE_LINES, framed
from docmind_lab.core.text import markdown_table


@dataclass(frozen=True)
class Code:
    """Lines of a program, a command or a configuration. in_text: how plain text has them; None for as they are."""

    lines: str
    in_text: str | None = None


Block = str | tuple[str, ...] | pd.DataFrame | Code
"""A paragraph, a list, a table (a frame that is counted through has no index to show), or code."""


@dataclass(frozen=True, eq=False)
class Finding:
    """What a measurement shows.

    Args:
        words: What it says, from top to bottom: a title, then paragraphs, lists, tables and code.
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
        """What stands under the title; a list without a line is left out, and a table without a column."""
        tables = [isinstance(block, pd.DataFrame) and not len(block.columns) for block in self.words]
        pairs = zip(self.words[1:], tables[1:], strict=True)
        return [block for block, is_bare in pairs if not (is_bare or (isinstance(block, tuple) and not block))]

    @property
    def sentences(self) -> list[str]:
        """The paragraphs and the lines of the lists, without the title."""
        lists = (
            [block] if isinstance(block, str) else block for block in self.words[1:] if isinstance(block, str | tuple)
        )
        return [line for lines in lists for line in lines]

    def text(self, width: int | None = None, *, narrow: bool = False) -> str:
        """Return the finding as plain text; an empty line follows each table.

        Args:
            width: Columns in which paragraphs and lists are wrapped; None for lines of any length.
            narrow: Whether tables keep to the width too; columns that do not fit are named below.
        """
        lines = [line for block in (self.title, *self._below) for line in _text_lines(block, width, narrow=narrow)]
        return "\n".join(lines).rstrip("\n")

    def text_in_short(self, whole: str) -> str:
        """Return what fits on a screen, and how to see the rest. whole: the call for that."""
        lines = self.text(COLUMNS, narrow=True).splitlines()
        if len(lines) > LINES:
            lines[LINES - 1 :] = [f"… {len(lines) - LINES + 1} more lines: {whole}"]
        return "\n".join(line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in lines)

    def html_in_short(self) -> str:
        """Return the finding as HTML; what does not fit on a screen is folded."""
        room, top, rest = PAGE_LINES - _page_lines(self.title), "", ""
        for block in self._below:
            room -= _page_lines(block)
            if room < 0:
                rest += _html(block)
            else:
                top += _html(block)
        folded = f"<details><summary>More</summary>{rest}</details>" if rest else ""
        return framed(f"<p><b>{escape(self.title)}</b></p>{top}{folded}")

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
        return framed(self.html())


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

    def as_shown(self) -> Finding:
        """Return the finding with what matters most first, as a screen shows the beginning of it."""
        return self.finding()

    def __repr__(self) -> str:
        return self.as_shown().text_in_short("print(result.text())")

    def _repr_html_(self) -> str:
        return self.as_shown().html_in_short()


def after_interrupt(finished: str, verdict: str) -> str:
    """Return a verdict; after an interrupt it says first of how many parts it is. finished: "" where it is of all."""
    return f"Interrupted, with {finished}. {verdict}" if finished else verdict


def _text_lines(block: Block, width: int | None, *, narrow: bool) -> Iterator[str]:
    if isinstance(block, pd.DataFrame):
        yield from _table_lines(block, width if narrow else None)
        yield ""
    elif isinstance(block, Code):
        yield block.lines if block.in_text is None else block.in_text
    else:
        for line in [block] if isinstance(block, str) else (f"- {line}" for line in block):
            yield from [line] if width is None else _wrapped(line, width)


def _table_lines(frame: pd.DataFrame, width: int | None) -> list[str]:
    """Return the lines of a table. width: columns that fit; those of the table that do not are left out, and named."""
    count = len(frame.columns)
    while True:
        lines = str(frame.iloc[:, :count].to_string(index=_has_names(frame))).splitlines()
        if width is None or count < 2 or max(map(len, lines)) <= width:
            break
        count -= 1
    left_out = [str(name) for name in frame.columns[count:]]
    return lines + (_wrapped(f"Further columns: {', '.join(left_out)}.", COLUMNS) if left_out else [])


def _page_lines(block: Block) -> float:
    """Return how many lines of a page a block takes, at the least width."""
    if isinstance(block, pd.DataFrame):
        return 1.4 * (len(block) + 2)
    if isinstance(block, Code):
        return 1 + len(block.lines.splitlines())
    return sum(0.6 + math.ceil(len(line) / PAGE_COLUMNS) for line in ([block] if isinstance(block, str) else block))


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
    if isinstance(block, Code):
        return f"```\n{block.lines}\n```"
    return block if isinstance(block, str) else "\n".join(f"- {line}" for line in block)


def _html(block: Block) -> str:
    if isinstance(block, pd.DataFrame):
        return f'<div class="wide">{block.to_html(index=_has_names(block), border=0)}</div>'
    if isinstance(block, Code):
        return f"<pre>{escape(block.lines)}</pre>"
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in block)}</ul>"


def _has_names(frame: pd.DataFrame) -> bool:
    return not isinstance(frame.index, pd.RangeIndex)
