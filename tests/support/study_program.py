"""Studies in processes that tests may kill or interrupt: builds the stack once, then forks a process for each job.

A job is {"command": …, "out": …}: a `compare` or `sweep` of the command line, measured in its process itself; or
"study", a call of `sweep`, with "workers" and "kill_at_step" if need be.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from job_program import BROKEN, INTERRUPTED, serve_jobs
from small_studies import DESIGN, small_cells

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess, Workers, cells
from docmind_lab.experiments.batch.cells import run_cell
from docmind_lab.experiments.comparison import cell_runner
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep
from docmind_lab.findings.study_folder import StudyFolder
from docmind_lab.views.cli import main as command_line

STUDY = """
name = "interrupted"
repeats = 3
[factors]
alternative = "unguarded,A,B"
decision_timeout_s = [20]
latency_profile = "typical"
"""
COMPARE = ["compare", "--runs", "3", "--alternatives", "unguarded,A,B", "--latencies", "typical"]
_FILE_STEPS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def run(job: dict[str, Any]) -> int:
    with small_cells():
        return _study(job, Path(job["out"])) if job["command"] == "study" else _command(job["command"], job["out"])


def _study(job: dict[str, Any], out: Path) -> int:
    _note_cells(Path(f"{out}.log"))
    sys.addaudithook(_Steps(out, job.get("kill_at_step")))
    study = sweep(DESIGN, out=out, workers=job.get("workers", 1))
    if study.interrupted:
        return INTERRUPTED
    if failed := study.manifest["failed_cells"]:
        raise RuntimeError(f"cells failed: {failed}")
    return 0


def _command(command: str, out: str) -> int:
    made = cells.cells_of
    cell_runner.cells_of = lambda orders, system, *_: made(orders, system, 2)
    cell_runner.workers_for = lambda *_: Workers(InThisProcess)
    _note_runs(Path(f"{out}.begun"))
    study = Path(f"{out}.toml")
    study.write_text(STUDY)
    try:
        command_line([*(COMPARE if command == "compare" else ["sweep", str(study)]), "--out", out])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return BROKEN


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


def _note_cells(log: Path) -> None:
    """Have each cell noted once it is kept."""
    keep = StudyFolder.keep

    def noted(self: StudyFolder, cell_id: str, measured: Any) -> None:
        keep(self, cell_id, measured)
        _add_line(log, cell_id)

    StudyFolder.keep = noted  # type: ignore[method-assign]


def _note_runs(log: Path) -> None:
    """Have each run noted as it begins."""
    measure = SimulatedSystem.measure

    def noted(self: SimulatedSystem, order: Any, *args: Any, **options: Any) -> Any:
        _add_line(log, order.facts.run_id)
        return measure(self, order, *args, **options)

    SimulatedSystem.measure = noted  # type: ignore[method-assign]


def _add_line(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


if __name__ == "__main__":
    # The system is built here once, and the forks have it.
    with small_cells(1):
        run_cell(benches_of(StudyDesign.of(DESIGN), Settings())[0].cells[0])
    serve_jobs(run)
