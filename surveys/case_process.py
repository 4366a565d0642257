"""A case as a process: the lines that it prints, timed from outside, and how it ends."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from docmind_lab.systems.own.programs import ProcessGroup

LOOK_S: Final = 0.1
TEXT_LIMIT: Final = 300
_EXIT_LIMIT_S = 10.0


@dataclass(frozen=True)
class Event:
    """A line that a case printed. at_s: When it was read, seconds of `time.monotonic`."""

    at_s: float
    data: dict[str, Any]


class CaseProcess:
    """A case as a process; a context manager that ends it and all that it started."""

    def __init__(self, command: list[str], variables: dict[str, str], scratch: str, stop: threading.Event) -> None:
        self._stop = stop
        self._errors = Path(scratch) / "stderr"
        self._lines: queue.Queue[Event | None] = queue.Queue()
        with self._errors.open("wb") as errors:
            # A group of its own, so that all that it starts can be ended with it.
            self._group = ProcessGroup(
                command, variables, folder=scratch, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
            )
        self._process = self._group.process
        self._reader = threading.Thread(target=self._read, name="probe-case", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            at_s = time.monotonic()
            # A framework may print lines of its own.
            with contextlib.suppress(ValueError):
                data = json.loads(line)
                if isinstance(data, dict) and "event" in data:
                    self._lines.put(Event(at_s, data))
        self._lines.put(None)

    def event(self, name: str, limit_at_s: float) -> Event | None:
        """The next event of a name; None when the process ended, the limit was reached or the run is stopped."""
        while not self._stop.is_set():
            try:
                event = self._lines.get(timeout=max(0.0, min(LOOK_S, limit_at_s - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= limit_at_s:
                    return None
                continue
            if event is None or event.data["event"] == name:
                return event
        return None

    @property
    def has_exited(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def leave(self) -> float | None:
        """Close its standard input; return after how many seconds the process ended, None when it did not."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        closed_at_s = time.monotonic()
        while not self.has_exited:
            if time.monotonic() > closed_at_s + _EXIT_LIMIT_S or self._stop.is_set():
                return None
            time.sleep(0.01)
        return time.monotonic() - closed_at_s

    def last_words(self, otherwise: str) -> str:
        """The last line that the process wrote to standard error, or other words without one."""
        lines = self._errors.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip()[:TEXT_LIMIT] for line in reversed(lines) if line.strip()), otherwise)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._group.kill()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
