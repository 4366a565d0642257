"""A report in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, written_whole
from docmind_lab.interfaces.reports.as_json import as_json
from docmind_lab.interfaces.reports.html import as_html
from docmind_lab.interfaces.reports.markdown import as_markdown
from docmind_lab.interfaces.reports.model import Report

FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {"html": as_html, "md": as_markdown, "json": as_json}
"""How a report can be written, by the ending of its file."""


def write_report(report: Report, path: str | os.PathLike[str], kind: str | None = None) -> Path:
    """The file, written whole, in place of one that was there. kind: html, md or json; by its ending when left out.

    Raises: ConfigurationError for another format, or a file that cannot be written.
    """
    target = Path(path)
    chosen = format_of(target, kind)
    text = FORMATS[chosen](report)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return written_whole(target, as_text(text))
    except OSError as error:
        raise ConfigurationError(f"--out {target} cannot be written ({error.strerror}); choose another file") from error


def format_of(path: Path, kind: str | None = None) -> str:
    """The format asked for, or that of the ending. Raises: ConfigurationError for one that is not known."""
    chosen = kind or path.suffix.removeprefix(".").lower()
    if chosen not in FORMATS:
        known = ", ".join(FORMATS)
        what = f"--format {chosen!r} is not known" if kind else f"--out {path} does not say its format by its ending"
        raise ConfigurationError(f"{what}; there are {known}")
    return chosen
