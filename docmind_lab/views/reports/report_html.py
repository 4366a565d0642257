"""Writes a report as one HTML page that asks for nothing else: styles, figures and numbers are inside."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable
from pathlib import Path

import jinja2

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.views.reports.report_model import Facts, Figure, Prose, Report, Table


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
    environment.filters["data_uri"] = _data_uri
    for kind in (Prose, Facts, Table, Figure):
        environment.tests[kind.__name__.lower()] = _kind_test(kind)
    return environment


def _data_uri(figure: Figure) -> str:
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
