"""`docmind-lab doctor`: is everything there, and what is in force."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from docmind_lab.cli.console import console, load_settings

_MARKS = {"ok": "ok", "failed": "FAILED", "note": "note"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON and nothing else.")] = False,
) -> None:
    """Check versions, settings and endpoints, and how late this machine's timers are. Exit code 1: something failed."""
    from docmind_lab.diagnosis import diagnose  # noqa: PLC0415 - slow, and --help does not need it

    checks = []
    out = console()
    for check in diagnose(load_settings()):
        checks.append(check)
        if not as_json:
            out.print(f"{_MARKS[check.verdict]:<7} {check.subject:<48} {check.finding}", markup=False, soft_wrap=True)
            if check.remedy:
                out.print(f"{'':<7} {'':<48} → {check.remedy}", markup=False, soft_wrap=True)
    failed = [check for check in checks if check.verdict == "failed"]
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        out.print(f"\n{len(checks) - len(failed)} of {len(checks)} checks are well." if failed else "\nAll is well.")
    if failed:
        raise typer.Exit(1)
