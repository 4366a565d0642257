"""Writes figures to files, without pyplot."""

from __future__ import annotations

import os
from pathlib import Path

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_bytes, as_text, write_whole
from docmind_lab.findings.study import Study
from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots.frontiers import frontier
from docmind_lab.views.plots.goodputs import LoadMeasures, abandoned_share, goodput
from docmind_lab.views.plots.look import blank_axes, png_of
from docmind_lab.views.plots.overruns import overrun, overrun_frame, overrun_size
from docmind_lab.views.plots.timelines import lanes_frame, timeline, timeline_frame, timeline_size

_LOAD_SIZE = (9.0, 5.0)
_FRONTIER_SIZE = (10.0, 6.0)


def save_load_figures(study: LoadMeasures, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write goodput.png and abandoned.png of a load study, and return their paths.

    The latter is left out where the provider has no limit of slots. Raises: OSError when it cannot write.
    """
    pictures = {"goodput.png": goodput(study, ax=blank_axes(*_LOAD_SIZE))}
    if not study.replicates()["abandoned_share"].isna().all():
        pictures["abandoned.png"] = abandoned_share(study, ax=blank_axes(*_LOAD_SIZE))
    return tuple(write_whole(Path(directory) / name, as_bytes(png_of(ax))) for name, ax in pictures.items())


def save_sweep_figures(study: StudyTables, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write a sweep's figures and return their paths: frontier.png for several timeouts, else a comparison's.

    A sweep over other factors has no figure of all its runs, and none is written; the report has one of each condition.
    Raises: OSError when it cannot write.
    """
    try:
        if study.runs["decision_timeout_s"].nunique() < 2:
            return save_figures(study, directory)
        picture = png_of(frontier(study, ax=blank_axes(*_FRONTIER_SIZE)))
    except ConfigurationError:
        return ()
    return (write_whole(Path(directory) / "frontier.png", as_bytes(picture)),)


def save_figures(study: StudyTables, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write timeline.png (the question with the most late work) and overrun.png, and return their paths.

    Both are drawn before either is written, and each appears whole or not at all: a temporary file beside it is
    renamed. The directory is made if need be.
    Raises: ConfigurationError when the study has no runs or several decision timeouts; OSError when it cannot write.
    """
    roles = len(timeline_frame(study)["role"].cat.categories)
    pictures = {
        "timeline.png": timeline(study, ax=blank_axes(*timeline_size(len(lanes_frame(study)), roles))),
        "overrun.png": overrun(study, ax=blank_axes(*overrun_size(overrun_frame(study)["group"].nunique()))),
    }
    images = {name: png_of(ax) for name, ax in pictures.items()}
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(write_whole(folder / name, as_bytes(image)) for name, image in images.items())


def save_study(study: Study, directory: str | os.PathLike[str]) -> Path:
    """Write runs, calls and events (.parquet), manifest.json, timeline.png, overrun.png and summary.md.

    Raises: ConfigurationError when the folder cannot be written or holds a study already.
    """
    folder = study.save(directory)
    save_figures(study, folder)
    write_whole(folder / "summary.md", as_text(study.report()))
    return folder
