"""A report as Markdown: its words and its tables; of a figure what it shows, and its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from docmind_lab.interfaces.reports.model import Block, Facts, Figure, Prose, Report, Table


def as_markdown(report: Report) -> str:
    """All of it but the images."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield f"# {_escaped(report.title)}"
    for section in report.sections:
        yield f"## {_escaped(section.heading)}"
        for block in section.blocks:
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        yield _words(block)
    elif isinstance(block, Facts):
        yield "\n".join(f"- **{name}**: {_escaped(value)}" for name, value in block.items.items())
    elif isinstance(block, Figure):
        yield f"### {_escaped(block.title)}"
        yield _escaped(block.alt)
        for table in block.tables:
            yield from _table(table)
    else:
        yield from _table(block)


def _words(words: Prose) -> str:
    if words.kind == "code":
        # Longer than any row of marks in it, which would end it.
        marks = [len(found) for line in words.lines for found in re.findall("`+", line)]
        fence = "`" * max(3, 1 + max(marks, default=0))
        return "\n".join([fence, *words.lines, fence])
    if words.kind == "heading":
        return f"### {_escaped(' '.join(words.lines))}"
    if words.kind == "list":
        return "\n".join(f"- {_escaped(line)}" for line in words.lines)
    return "\n\n".join(_escaped(line) for line in words.lines)


def _table(table: Table) -> Iterator[str]:
    yield f"*{_escaped(table.caption)}*"
    if table.shown.empty:
        return
    columns = list(table.shown.columns)
    rule = "|".join("---" if place == 0 or name in table.left else "---:" for place, name in enumerate(columns))
    rows = [_row(str(name) for name in columns), f"|{rule}|"]
    rows += [_row(str(cell) for cell in row) for row in table.shown.itertuples(index=False, name=None)]
    yield "\n".join(rows)


def _row(cells: Iterator[str]) -> str:
    return "| " + " | ".join(_escaped(cell).replace("|", "\\|") for cell in cells) + " |"


def _escaped(text: str) -> str:
    """The text with what Markdown, or the HTML that it may hold, would take for markup made plain."""
    for mark in ("\\", "`", "*", "_", "["):
        text = text.replace(mark, f"\\{mark}")
    return escape(text, quote=False)
