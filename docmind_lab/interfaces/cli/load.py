"""A study file with a `[load]` table: what `docmind-lab sweep` does with it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.interfaces.cli.console import INTERRUPTED, ProgressBar, console

if TYPE_CHECKING:
    from docmind_lab.core.settings import Settings


def run_load_study(
    path: str, values: Mapping[str, Any], settings: Settings, *, out: str, workers: int | None, as_json: bool
) -> None:
    """Run it, keep it in a folder with its figures, and print what it says. Raises: ConfigurationError."""
    from docmind_lab.analysis.plots.files import save_load_figures  # noqa: PLC0415 - slow, and --help does not need it
    from docmind_lab.experiments.load import load_options, run_load  # noqa: PLC0415

    others = sorted(values.keys() - {"load"})
    if others:
        raise ConfigurationError(f"study file {path}: {others[0]}: a load study has its fields in [load], all of them")
    options = load_options(values["load"])
    folder = Path(out or f"results/{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-load")
    shown = ProgressBar("queries", "offering", shown=not as_json)
    try:
        study = run_load(**options, settings=settings, workers=workers, out=folder, progress=shown.show)
    except KeyboardInterrupt:
        kept = f"; the crowds that were done are in {folder}" if folder.exists() else ""
        typer.echo(f"docmind-lab: interrupted{kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        shown.close()
    save_load_figures(study, folder)
    if as_json:
        rows = json.loads(study.summary().to_json(orient="records"))
        typer.echo(json.dumps({"study_id": study.manifest["study_id"], "folder": str(folder), "loads": rows}, indent=2))
        return
    console().print(str(study), soft_wrap=True, markup=False)
    typer.echo(f"\nIn {folder}: queries.parquet, servings.parquet, goodput.png, abandoned.png, manifest.json")
