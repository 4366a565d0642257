"""What a command says before it sends anything to a live endpoint, and afterwards of what it sent or replayed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import typer

from docmind_lab.interfaces.cli.console import INTERRUPTED

RECORD_HELP = "Folder for a recording of the study (wall clock): timings of every call, to replay with --replay."
RECORD_TEXT_HELP = "Record what was answered too, and digests of what was asked; without it no text is kept."
REPLAY_HELP = "Folder of a recording to replay in virtual time; budget, runs, alternatives and retries may be others."
MAX_REQUESTS_HELP = "End the study before it sends more model requests than this (wall clock)."
MAX_TOKENS_HELP = "End the study when its model calls have taken this many tokens; calls under way may pass it."
YES_HELP = "Do not ask before requests are sent to a live endpoint."


class Pausable(Protocol):
    """Something on the screen that can make room for a question."""

    def pause(self) -> None:
        """Take it off the screen for a while."""

    def go_on(self) -> None:
        """Put it back."""


def asking(*, yes: bool, drawn: Pausable | None) -> Callable[[str], None]:
    """What is called with the estimate of a live study: shows it and, on a terminal, asks. yes: do not ask."""

    def ask(estimate: str) -> None:
        if drawn is not None:
            drawn.pause()
        typer.echo(f"To be sent to the live endpoint: {estimate}.", err=True)
        if not yes and sys.stdin.isatty() and not typer.confirm("Send them?", err=True):
            typer.echo("docmind-lab: nothing was sent", err=True)
            raise typer.Exit(INTERRUPTED)
        if drawn is not None:
            drawn.go_on()

    return ask


def notes(manifest: Mapping[str, Any], runs: int) -> Iterator[str]:
    """What the manifest of a study says of caps and replays, a sentence each. runs: that are in its tables."""
    sent = manifest.get("sent")
    if sent is not None:
        estimated = sent["requests_with_estimated_tokens"]
        unsaid = f", of {estimated:,} requests estimated" if estimated else ""
        yield f"Sent: {sent['requests']:,} model requests, {sent['tokens']:,} tokens{unsaid}."
    if "ended_by" in manifest:
        yield (
            f"Ended by {manifest['ended_by']}. Its {runs} finished runs are kept; {sent['runs_cut'] if sent else 0} "
            "that needed another request are left out."
        )
    if "replayed_calls" in manifest:
        # Function-level: it comes with pandas, and --help must not wait for it.
        from docmind_lab.experiments.recordings.account import ReplayAccount  # noqa: PLC0415

        yield f"A replay: {ReplayAccount(**manifest['replayed_calls'])}."
