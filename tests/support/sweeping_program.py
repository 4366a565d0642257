"""Sweeps in processes that tests may kill: imports the stack once, then forks a process for each sweep asked for.

A job is {"out": …}, with "workers" and "kill_at_step" if need be.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from job_program import serve_jobs
from small_studies import DESIGN, small_cells

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch.cells import run_cell
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep
from docmind_lab.findings.study_folder import StudyFolder

_FILE_STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run(job: dict[str, Any]) -> int:
    out = Path(job["out"])
    _log_cells(out)
    steps = _Steps(out, job.get("kill_at_step"))
    sys.addaudithook(steps)
    with small_cells():
        study = sweep(DESIGN, out=out, workers=job.get("workers", 1))
    if failed := study.manifest["failed_cells"]:
        raise RuntimeError(f"cells failed: {failed}")
    Path(f"{out}.steps").write_text(str(steps.count))
    return 0


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
    # The system is built here once, and the forks have it.
    with small_cells(1):
        run_cell(benches_of(StudyDesign.of(DESIGN), Settings())[0].cells[0])
    serve_jobs(run)
