"""`docmind-lab export DIR`: a study's tables for other tools, or its runs for a collector and for Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError

_FORMATS = ("csv", "duckdb")


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    to: Annotated[str, typer.Option(help="Folder for CSV files, or a file that ends in .duckdb.")] = "",
    as_format: Annotated[
        str, typer.Option("--format", help="csv or duckdb; by the ending of --to when left out.")
    ] = "",
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Send spans of runs and calls to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    metrics_file: Annotated[
        str, typer.Option(help="Write Prometheus metrics of the runs to this file; none when left out.")
    ] = "",
) -> None:
    """Write the tables runs, calls and events, with the manifest and what every column means.

    With --otlp or --metrics-file, tell of its runs and calls in spans and metrics, beside the tables or without them.
    """
    if not (to or otlp or metrics_file):
        raise ConfigurationError("nothing to export to: give --to, --otlp or --metrics-file")
    # Before anything is sent, which cannot be taken back.
    if as_format and as_format not in _FORMATS:
        raise ConfigurationError(f"--format {as_format!r} is not known; there are {', '.join(_FORMATS)}")
    if as_format and not to:
        raise ConfigurationError(f"--format {as_format} is of tables; name where they go too, with --to")
    # Function-level: reading tables takes a second to import, and --help must not.
    from docmind_lab.analysis.export import DUCKDB_SUFFIX, export_csv, export_duckdb  # noqa: PLC0415
    from docmind_lab.analysis.study_folder import load  # noqa: PLC0415

    suffix = Path(to).suffix
    if to and not as_format and suffix not in ("", DUCKDB_SUFFIX):
        raise ConfigurationError(
            f"--to {to}: name a folder for CSV files, or a file that ends in {DUCKDB_SUFFIX}; say which with --format"
        )
    study = load(folder)
    if otlp or metrics_file:
        from docmind_lab.interfaces.telemetry import Telemetry  # noqa: PLC0415

        told = Telemetry(spans="otlp" if otlp else None, metrics_file=metrics_file or None).send(study)
        typer.echo(f"told of {told} run{'' if told == 1 else 's'}")
    if not to:
        return
    target = Path(to)
    kind = as_format or ("duckdb" if target.suffix == DUCKDB_SUFFIX else "csv")
    written = (export_duckdb(study, target),) if kind == "duckdb" else export_csv(study, target)
    for path in written:
        typer.echo(str(path))
