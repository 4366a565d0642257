"""Workers end with their parent, and a pool that cannot be made says why in one line."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.batch import Workers, processes, workers

# Loads the one file, since the package takes seconds to import.
WORKER = f"""
import importlib.util, os, time
spec = importlib.util.spec_from_file_location("workers", {workers.__file__!r})
workers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(workers)
workers.begin_worker(os.getppid())
print(os.getpid(), flush=True)
time.sleep(600.0)
"""
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {WORKER!r}])
"""
# The watch looks once a second; the rest is room for a busy machine.
PATIENCE_S = 30.0


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_ends_within_seconds_of_its_parent_that_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_alive(worker)
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + PATIENCE_S
    while is_alive(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(worker)


def test_every_pool_of_processes_has_its_workers_watch_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "docmind_lab.experiments.batch.workers.ProcessPoolExecutor", lambda **options: seen.append(options)
    )
    processes(1)()
    assert [(options["initializer"], options["initargs"]) for options in seen] == [
        (workers.begin_worker, (os.getpid(),))
    ]


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOENT])
def test_without_shared_memory_the_remedy_is_named(number: int) -> None:
    def refused() -> Any:
        raise OSError(number, os.strerror(number))

    with pytest.raises(ConfigurationError, match=r"need shared memory.*make /dev/shm writable"):
        Workers(refused)
