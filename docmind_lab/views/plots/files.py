"""Writes figures to files, without pyplot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes

from docmind_lab.core.whole_files import as_bytes, as_text, write_whole
from docmind_lab.findings.study import Study
from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots.frontiers import frontier
from docmind_lab.views.plots.look import OFFSCREEN, png_of
from docmind_lab.views.plots.overruns import overrun
from docmind_lab.views.plots.timelines import timeline


def save_figures(study: StudyTables, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write the figures of all runs of a study and return their paths: frontier.png for several decision timeouts.

    Of one, timeline.png (the question with the most late work) and overrun.png. All are drawn before any is written,
    and each appears whole or not at all: a temporary file beside it is renamed.

    Args:
        study: A study, or any object with the frames `runs`, `calls` and `events`.
        directory: Folder of the files, which is made if need be.

    Raises:
        ConfigurationError: The study has no runs, or other conditions vary: a report has figures of each of them.
        OSError: A file cannot be written.
    """
    if study.runs["decision_timeout_s"].nunique() > 1:
        return _save({"frontier.png": frontier(study, ax=OFFSCREEN)}, directory)
    return _save(
        {"timeline.png": timeline(study, ax=OFFSCREEN), "overrun.png": overrun(study, ax=OFFSCREEN)}, directory
    )


def _save(figures: Mapping[str, Axes], directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    images = {name: png_of(ax) for name, ax in figures.items()}
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(write_whole(folder / name, as_bytes(image)) for name, image in images.items())


def save_study(study: Study, directory: str | os.PathLike[str]) -> Path:
    """Write runs, calls and events (.parquet), manifest.json, timeline.png, overrun.png and summary.md.

    Args:
        study: A study.
        directory: Folder of the files, which is made if need be.

    Raises:
        ConfigurationError: The folder cannot be written, or holds a study already.
    """
    folder = study.save(directory)
    save_figures(study, folder)
    write_whole(folder / "summary.md", as_text(study.report()))
    return folder
