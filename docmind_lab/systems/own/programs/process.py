"""A process with all that it starts: a process group of its own, which is signalled and ended as one."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

# What is not a member's own business: how soon the end of the last one is seen.
_LOOK_S = 0.02
_GONE = frozenset("ZX")

_running: set[ProcessGroup] = set()


class ProcessGroup:
    """A process in a session of its own, with all that it starts and that stays in its group.

    command: the program and its arguments; no shell reads them. folder: its working directory; None for the caller's.
    streams: stdin, stdout and stderr, as `subprocess` takes them.

    Raises: OSError when it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        *,
        folder: str | None = None,
        **streams: int | IO[Any],
    ) -> None:
        own_session: dict[str, Any] = {"start_new_session": True, **streams}
        self.process = subprocess.Popen(list(command), env=dict(variables), cwd=folder, **own_session)
        self._killed = threading.Event()
        _running.add(self)

    def signal(self, number: int) -> None:
        """Send a signal to every process of the group; a group that has ended gets none."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def is_alive(self) -> bool:
        """Return whether some process of the group is still at work."""
        if self.process.poll() is None:
            return True
        try:
            os.killpg(self.process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        # One that has ended stays in the group until its parent asks for its exit code.
        return not sys.platform.startswith("linux") or _has_member(self.process.pid)

    def wait_until_over(self) -> None:
        """Return when the last process of the group has ended, or `kill` was called."""
        self.process.wait()
        while self.is_alive() and not self._killed.wait(_LOOK_S):
            pass

    def kill(self) -> None:
        """End every process of the group at once, and wait for the first of them."""
        self._killed.set()
        self.signal(signal.SIGKILL)
        self.process.wait()
        _running.discard(self)


def _has_member(group: int) -> bool:
    """Return whether a process of the group is there that has not ended, from Linux's /proc."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            # The name of a program, in parentheses, may hold spaces.
            state, _, of = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if of == str(group) and state not in _GONE:
                return True
    return False


@atexit.register
def kill_all() -> None:
    """End every process group that is still there."""
    for group in list(_running):
        group.kill()
