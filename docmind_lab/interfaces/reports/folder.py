"""The report folder of a study: tables, manifest, figures and a summary in words."""

from __future__ import annotations

import os
from pathlib import Path

from docmind_lab.analysis import plots
from docmind_lab.analysis.study import Study
from docmind_lab.core.whole_files import as_text, written_whole


def save_study(study: Study, directory: str | os.PathLike[str]) -> Path:
    """Write runs, calls and events (.parquet), manifest.json, timeline.png, overrun.png and summary.md.

    Raises: ConfigurationError when the folder cannot be written or holds a study already.
    """
    folder = study.save(directory)
    plots.save_figures(study, folder)
    written_whole(folder / "summary.md", as_text(study.report()))
    return folder
