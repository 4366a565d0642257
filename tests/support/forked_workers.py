"""A service in two workers of gunicorn, which are forked from a process that has loaded it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
from held_graphs import wait_until


@contextlib.contextmanager
def two_workers(
    application: str, folder: Path, environment: Mapping[str, str], within_s: float
) -> Iterator[httpx.Client]:
    """A client of the application, once both workers are there.

    Args:
        application: Its name, "module:attribute".
        folder: Where gunicorn runs, and leaves its socket and its log.
        environment: Its variables.
        within_s: Seconds in which it starts, or ends.
    """
    socket, log = folder / "socket", folder / "log"
    options = ["--preload", "--workers", "2", "--timeout", "60", "--no-control-socket", "--bind", f"unix:{socket}"]
    program = [sys.executable, "-m", "gunicorn", *options, application]
    with log.open("w") as output:
        process = subprocess.Popen(program, env=dict(environment), cwd=folder, stdout=output, stderr=output)
    try:
        wait_until(lambda: log.read_text().count("Booting worker") == 2 or process.poll() is not None, within_s)
        assert process.poll() is None, log.read_text()
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), timeout=20) as client:
            yield client
    finally:
        process.terminate()
        process.wait(within_s)
