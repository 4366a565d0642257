"""Programs that import the stack once and then fork a process for each job, for tests that kill or interrupt them.

A program prints a line when it is ready, reads jobs as lines of JSON and answers each with a line: {"start": {…}} with
the process id of the job, {"wait": pid} with its exit code (`serve_jobs`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tqdm.std import tqdm

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parents[1]
# Nothing here is timed; this ends a test that would wait for ever on whatever machine.
PATIENCE_S = 120.0
INTERRUPTED, BROKEN = 130, 70


class JobProgram:
    """A program that runs jobs in processes of their own."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program
        self._answer()

    def start(self, **job: Any) -> int:
        """The process id of a job."""
        return int(self._request({"start": job})["pid"])

    def ended(self, pid: int) -> int:
        """Its exit code, or the negative number of the signal that killed it; of one that hangs, SIGKILL's."""
        timer = threading.Timer(PATIENCE_S, os.kill, (pid, signal.SIGKILL))
        timer.start()
        try:
            return int(self._request({"wait": pid})["code"])
        finally:
            timer.cancel()

    def _request(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._program.stdin is not None
        print(json.dumps(job), file=self._program.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._program.stdout is not None
        answer: dict[str, Any] = json.loads(self._program.stdout.readline())
        return answer


@contextlib.contextmanager
def job_program(name: str) -> Iterator[JobProgram]:
    """The program of this name in this folder, which ends with the block."""
    path = os.pathsep.join([str(ROOT), str(SUPPORT)])
    with subprocess.Popen(
        [sys.executable, str(SUPPORT / name)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A fork does not get the threads of linear algebra that its parent had.
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    ) as program:
        yield JobProgram(program)
        assert program.stdin is not None
        program.stdin.close()


def serve_jobs(run: Callable[[dict[str, Any]], int]) -> None:
    """Serve jobs until standard input ends, each in a forked process and process group of its own.

    run: does a job and returns its exit code; what it prints is in the file `out` of the job, with ".said" behind.
    """
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if "start" in job:
            pid = os.fork()
            if pid == 0:
                _do(run, job["start"])
            os.setpgid(pid, pid)
            print(json.dumps({"pid": pid}), flush=True)
        else:
            _, status = os.waitpid(job["wait"], 0)
            print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


def _do(run: Callable[[dict[str, Any]], int], job: dict[str, Any]) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(job["out"] + ".said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A search takes tqdm's lock, a semaphore that forks share: one that is killed with it would keep it for ever.
    tqdm.set_lock(threading.RLock())
    code = BROKEN
    try:
        code = run(job)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:  # noqa: BLE001 - a fork must not return into the loop of its parent
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)
