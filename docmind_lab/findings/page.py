"""A finding as it is shown: a title, and under it words, lists, tables and lines to paste.

Text, Markdown and HTML of every finding are written here, so that a finding says once what there is to say.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

import pandas as pd

from docmind_lab.core.catalogue import with_label
from docmind_lab.core.text import markdown_of_frame, markdown_table


@dataclass(frozen=True)
class Paste:
    """A line to paste into a configuration or a program."""

    line: str


Block = str | tuple[str, ...] | pd.DataFrame | Paste
"""A paragraph, a list, a table (a frame that is counted through has no index to show), or a line to paste."""


@dataclass(frozen=True, eq=False)
class Page:
    """What a finding shows, from top to bottom."""

    title: str
    blocks: tuple[Block, ...]

    def text(self) -> str:
        """Return the page as plain text; an empty line follows each table."""
        lines = [self.title, *(line for block in self.blocks for line in _text_lines(block))]
        return "\n".join(lines).rstrip("\n")

    def markdown(self) -> str:
        """Return the page as Markdown."""
        return "\n\n".join([f"## {self.title}", *map(_markdown, self.blocks)]) + "\n"

    def html(self) -> str:
        """Return the page as HTML; names of arms or nodes are escaped, so they are never markup."""
        return f"<p><b>{escape(self.title)}</b></p>" + "".join(map(_html, self.blocks))


class Shown(abc.ABC):
    """A finding that is shown as its page: in a terminal, in a notebook, as text and as Markdown."""

    @abc.abstractmethod
    def page(self) -> Page:
        """Return what is shown."""

    def text(self) -> str:
        """Return the finding as plain text."""
        return self.page().text()

    def markdown(self) -> str:
        """Return the finding as Markdown."""
        return self.page().markdown()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.page().html()


def _text_lines(block: Block) -> Iterator[str]:
    if isinstance(block, pd.DataFrame):
        yield block.to_string(index=_has_names(block))
        yield ""
    elif isinstance(block, Paste):
        yield with_label(block.line)
    else:
        yield from [block] if isinstance(block, str) else (f"- {line}" for line in block)


def _markdown(block: Block) -> str:
    if isinstance(block, pd.DataFrame):
        return markdown_of_frame(block) if _has_names(block) else markdown_table([*map(str, block)], block.to_numpy())
    if isinstance(block, Paste):
        return f"```\n{block.line}\n```"
    return block if isinstance(block, str) else "\n".join(f"- {line}" for line in block)


def _html(block: Block) -> str:
    if isinstance(block, pd.DataFrame):
        return block.to_html(index=_has_names(block), border=0)
    if isinstance(block, Paste):
        return f"<pre>{escape(block.line)}</pre>"
    if isinstance(block, str):
        return f"<p>{escape(block)}</p>"
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in block)}</ul>"


def _has_names(frame: pd.DataFrame) -> bool:
    return not isinstance(frame.index, pd.RangeIndex)
