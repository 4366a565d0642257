"""The parts of a report, and the one HTML page of them, with styles, figures and numbers inside."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.findings.finding import Code, Finding

# A table that is longer stands folded under its caption: it is there to be looked up, not to be read.
LONGEST_OPEN = 16


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


Block = str | tuple[str, ...] | Code | Finding | Mapping[str, str] | Table | Figure
"""A paragraph, a list, lines to paste, a part with a heading of its own, facts by their names, a table, a figure."""


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


def as_html(report: Report) -> str:
    """Return a report as one HTML page. Names of arms or faults are escaped, so they are never markup."""
    return _templates().get_template("page.html.j2").render(report=report)


def table_html(table: Table) -> str:
    """Return a table with caption and row headings as HTML, in a region that the keyboard can scroll."""
    return str(_templates().get_template("table.html.j2").module.table(table))  # type: ignore[attr-defined]


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("docmind_lab.views.reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = data_uri
    for kind in (Code, Finding, Table, Figure):
        environment.tests[kind.__name__.lower()] = _kind_test(kind)
    return environment


def data_uri(figure: Figure) -> str:
    """Return the image of a figure as an address that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(figure.png).decode('ascii')}"


def _kind_test(kind: type) -> Callable[[object], bool]:
    """Return the test that a template applies with `is table` and the like."""
    return lambda block: isinstance(block, kind)


def write_report(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write a report to an HTML file, which is there whole or not at all, and replaces one that exists.

    Args:
        report: The report.
        path: The file, ending in .html.

    Raises:
        ConfigurationError: The file has another ending, or cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise ConfigurationError(
            f"--out {target}: a report is an HTML page; name a file that ends in .html (the study's folder has its "
            "tables as Parquet files, and summary.md in Markdown)"
        )
    return write_or_refuse(target, as_text(as_html(report)))
