"""Writes a report as HTML, Markdown or JSON.

HTML is one page that asks for nothing else: styles, figures and numbers are inside. Markdown and JSON have no images;
JSON has the tables with all digits, and the manifest.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

import jinja2
import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import markdown_table
from docmind_lab.core.whole_files import as_text, write_whole
from docmind_lab.views.reports.report_model import Block, Facts, Figure, Prose, Report, Table


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
    return f"data:{figure.media_type};base64,{base64.b64encode(figure.image).decode('ascii')}"


def _kind_test(kind: type) -> Callable[[object], bool]:
    """Return the test that a template applies with `is table` and the like."""
    return lambda block: isinstance(block, kind)


def as_markdown(report: Report) -> str:
    """Return a report as Markdown, without its images."""
    return "\n\n".join(_markdown_parts(report)) + "\n"


def _markdown_parts(report: Report) -> Iterator[str]:
    yield f"# {_escape(report.title)}"
    for section in report.sections:
        yield f"## {_escape(section.heading)}"
        for block in section.blocks:
            yield from _markdown_block(block)


def _markdown_block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        yield _markdown_words(block)
    elif isinstance(block, Facts):
        yield "\n".join(f"- **{name}**: {_escape(value)}" for name, value in block.items.items())
    elif isinstance(block, Figure):
        yield f"### {_escape(block.title)}"
        yield _escape(block.alt)
        for table in block.tables:
            yield from _markdown_table(table)
    else:
        yield from _markdown_table(block)


def _markdown_words(words: Prose) -> str:
    if words.kind == "code":
        # Longer than any row of marks in it, which would end it.
        marks = [len(result) for line in words.lines for result in re.findall("`+", line)]
        fence = "`" * max(3, 1 + max(marks, default=0))
        return "\n".join([fence, *words.lines, fence])
    if words.kind == "heading":
        return f"### {_escape(' '.join(words.lines))}"
    if words.kind == "list":
        return "\n".join(f"- {_escape(line)}" for line in words.lines)
    return "\n\n".join(_escape(line) for line in words.lines)


def _markdown_table(table: Table) -> Iterator[str]:
    yield f"*{_escape(table.caption)}*"
    if table.shown.empty:
        return
    left = {place for place, name in enumerate(table.shown.columns) if place == 0 or name in table.left}
    rows = table.shown.itertuples(index=False, name=None)
    yield markdown_table([*map(_cell, table.shown.columns)], (map(_cell, row) for row in rows), left)


def _cell(content: object) -> str:
    return _escape(str(content)).replace("|", "\\|")


def _escape(text: str) -> str:
    """Escape characters that Markdown, or HTML within it, would take for markup."""
    for mark in ("\\", "`", "*", "_", "["):
        text = text.replace(mark, f"\\{mark}")
    return escape(text, quote=False)


def as_json(report: Report) -> str:
    """Return a report as JSON, without its images. A missing number is null; an infinite one is "inf" or "-inf"."""
    return json.dumps(_to_strict_json(_json_report(report)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _json_report(report: Report) -> dict[str, Any]:
    sections = [
        {
            "name": section.name,
            "heading": section.heading,
            "blocks": [_json_block(block) for block in section.blocks],
        }
        for section in report.sections
    ]
    head = {"title": report.title, "study_id": report.study_id, "complete": report.complete}
    return {**head, "sections": sections, "manifest": report.manifest}


def _json_block(block: Block) -> dict[str, Any]:
    if isinstance(block, Prose):
        return {"kind": block.kind, "lines": list(block.lines)}
    if isinstance(block, Facts):
        return {"kind": "facts", "items": dict(block.items)}
    if isinstance(block, Figure):
        tables = [_json_table(table) for table in block.tables]
        return {"kind": "figure", "title": block.title, "alt": block.alt, "tables": tables}
    return _json_table(block)


def _json_table(table: Table) -> dict[str, Any]:
    plain = table.frame.astype(object)
    return {"kind": "table", "caption": table.caption, "rows": plain.to_dict("records")}


def _to_strict_json(value: Any) -> Any:
    """Return the value with types that strict JSON has."""
    if isinstance(value, Mapping):
        return {str(name): _to_strict_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_strict_json(item) for item in value]
    if isinstance(value, np.generic):
        return _to_strict_json(value.item())
    if value is pd.NA:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {"html": as_html, "md": as_markdown, "json": as_json}
"""The writer of each format of a report, by the ending of its file."""


def write_report(report: Report, path: str | os.PathLike[str], kind: str | None = None) -> Path:
    """Write a report to a file, replacing one that exists.

    path: the file; it is there whole or not at all. kind: html, md or json; by the ending of the file when left out.
    Raises: ConfigurationError (the format is not known, or the file cannot be written).
    """
    target = Path(path)
    chosen = format_of(target, kind)
    text = FORMATS[chosen](report)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return write_whole(target, as_text(text))
    except OSError as error:
        raise ConfigurationError(f"--out {target} cannot be written ({error.strerror}); choose another file") from error


def format_of(path: Path, kind: str | None = None) -> str:
    """Return the format of a report: `kind`, or the file's ending. Raises: ConfigurationError if it is not known."""
    chosen = kind or path.suffix.removeprefix(".").lower()
    if chosen not in FORMATS:
        known = ", ".join(FORMATS)
        what = f"--format {chosen!r} is not known" if kind else f"--out {path} does not say its format by its ending"
        raise ConfigurationError(f"{what}; there are {known}")
    return chosen
