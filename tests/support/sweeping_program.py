"""Sweeps in processes that tests may kill: imports the stack once, then forks a process for each sweep asked for.

Reads jobs as lines of JSON and writes a line of JSON for each: {"start": {…}} gives the process id of a sweep in a
process group of its own, {"wait": pid} how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from small_studies import DESIGN, small_cells
from tqdm.std import tqdm

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess
from docmind_lab.experiments.batch.cells import run_cell
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.experiments.sweeps.runner import benches_of, sweep
from docmind_lab.findings.study_folder import StudyFolder

INTERRUPTED, BROKEN = 130, 70
_FILE_STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def main() -> None:
    """Serve jobs until standard input ends."""
    # A search takes tqdm's lock, a semaphore that forks share: one that is killed with it would keep it for ever.
    tqdm.set_lock(threading.RLock())
    # The system is built here once, and the forks have it.
    with small_cells(1):
        run_cell(benches_of(StudyDesign.of(DESIGN), Settings())[0].cells[0])
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if "start" in job:
            pid = os.fork()
            if pid == 0:
                _child(job["start"])
            os.setpgid(pid, pid)
            print(json.dumps({"pid": pid}), flush=True)
        else:
            _, status = os.waitpid(job["wait"], 0)
            print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


def _child(job: dict[str, Any]) -> None:
    os.setpgid(0, 0)
    os.dup2(os.open(job["out"] + ".errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    try:
        _sweep(job)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException:  # noqa: BLE001 - a fork must not return into the loop of its parent
        os.write(2, traceback.format_exc().encode())
        code = BROKEN
    os._exit(code)


def _sweep(job: dict[str, Any]) -> None:
    out = Path(job["out"])
    _log_cells(out)
    steps = _Steps(out, job.get("kill_at_step"))
    sys.addaudithook(steps)
    options: dict[str, Any] = {"executor": InThisProcess()}
    if job.get("executor") == "processes":
        options = {"workers": 2}
    elif job.get("executor") == "forked":
        options = {"executor": ProcessPoolExecutor(1, mp_context=get_context("fork"))}
    with small_cells():
        study = sweep(DESIGN, out=out, **options)
    if failed := study.manifest["failed_cells"]:
        raise RuntimeError(f"cells failed: {failed}")
    Path(f"{out}.steps").write_text(str(steps.count))


class _Steps:
    """Counts what this process changes in the files of a folder, and kills its group before one of the steps."""

    def __init__(self, folder: Path, kill_at: int | None) -> None:
        self.folder, self.kill_at, self.count = str(folder), kill_at, 0

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        # How often it looks at them depends on how fast it is; what it changes does not.
        changes = event in _FILE_STEPS or (event == "open" and args[2] & _WRITING)
        if changes and str(args[0]).startswith(self.folder + os.sep):
            self.count += 1
            if self.count == self.kill_at:
                os.killpg(0, signal.SIGKILL)


def _log_cells(out: Path) -> None:
    """Have each cell that is kept noted beside the folder, with who kept it."""
    keep = StudyFolder.keep

    def noted(self: StudyFolder, cell_id: str, measured: Any) -> None:
        keep(self, cell_id, measured)
        with open(f"{out}.log", "a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {cell_id}\n")

    StudyFolder.keep = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
