"""Programs that a survey starts on this machine, as their documentation starts them, each with an HTTP address.

with started(GATEWAYS["caddy"], upstream="127.0.0.1:8000") as base_url:
    ...
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.services.server import bind

# A program in one file is there within a second; one in Python takes longer to import what it needs.
_START_LIMIT_S: Final = 300.0
_END_LIMIT_S: Final = 10.0


@dataclass(frozen=True)
class LocalProgram:
    """A program as its documentation starts it, with its defaults.

    Args:
        name: How rows call it.
        program: What is started; it must be on the PATH.
        version: Arguments with which it prints its version.
        arguments: Its arguments; {port}, {config}, {folder} and what the survey names are filled in.
        config: Text of its configuration, with the same to be filled in; empty for none.
        suffix: Of the configuration's file.
        variables: Of its environment, beside this process's own.
    """

    name: str
    program: str
    version: Sequence[str]
    arguments: Sequence[str]
    config: str = ""
    suffix: str = ".conf"
    variables: Mapping[str, str] = field(default_factory=dict)

    def version_text(self) -> str:
        """The version that the program prints. Raises: ConfigurationError when it is not installed."""
        printed = subprocess.run([self.path, *self.version], capture_output=True, text=True, check=False)
        number = re.search(r"\d+(\.\d+)+", printed.stdout + printed.stderr)
        return number[0] if number else "unknown"

    @property
    def path(self) -> str:
        """Where it is. Raises: ConfigurationError when it is not on the PATH."""
        found = shutil.which(self.program)
        if found is None:
            raise ConfigurationError(f"{self.name}: the program {self.program} is not on the PATH; install it first")
        return found


@dataclass(frozen=True)
class Running:
    """A program that runs. base_url: its OpenAI-compatible address. pid: of its process."""

    base_url: str
    pid: int


@contextlib.contextmanager
def started(program: LocalProgram, **filled: str) -> Iterator[Running]:
    """Start a program, and end it with the block.

    Args:
        program: The program.
        filled: What is filled into its arguments and its configuration.

    Raises: ConfigurationError when its program is not installed; ServiceError when it does not answer, with the last
        line that it printed.
    """
    with contextlib.closing(bind(0)) as listener:
        port = int(listener.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "output", "w+", encoding="utf-8") as output:
        config = Path(folder) / f"program{program.suffix}"
        filled = {"port": str(port), "config": str(config), "folder": folder, **filled}
        config.write_text(program.config.format(**filled), encoding="utf-8")
        arguments = [argument.format(**filled) for argument in program.arguments]
        environment = {**os.environ, **program.variables}
        process = subprocess.Popen(
            [program.path, *arguments], stdout=output, stderr=output, cwd=folder, env=environment
        )
        try:
            base_url = f"http://127.0.0.1:{port}/v1"
            if not _answers(f"{base_url}/models", lambda: process.poll() is None):
                output.seek(0)
                lines = output.read().strip().splitlines() or ["nothing"]
                raise ServiceError(f"{program.name} did not start; it printed last: {lines[-1]}")
            yield Running(base_url, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(_END_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(url: str, is_alive: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + _START_LIMIT_S
    while is_alive() and time.monotonic() < until_s:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(url, trust_env=False, timeout=5.0).status_code == 200:
                return True
        time.sleep(0.1)
    return False
