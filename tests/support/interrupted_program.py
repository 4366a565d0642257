"""Studies in processes that tests may interrupt: imports and builds the stack once, then forks a process for each.

A job is {"command": …, "out": …}: a `compare` or `sweep` of the command line, measured in its process itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from job_program import BROKEN, serve_jobs

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess, Workers, cells
from docmind_lab.experiments.batch.cells import run_cell
from docmind_lab.experiments.comparison import Comparison, cell_runner
from docmind_lab.experiments.comparison.virtual import simulated
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.sweeps import sweep_run
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.views.cli import main as command_line

STUDY = """
name = "interrupted"
repeats = 3
[factors]
alternative = "unguarded,A,B"
decision_timeout_s = [20]
latency_profile = "typical"
"""


def comparison() -> Comparison:
    """What `compare` measures here: its command line says the same."""
    profile = LatencyProfile.named("typical")
    return Comparison(runs=3, alternatives=parse_alternatives("unguarded,A,B"), profile=profile)


COMPARE = ["compare", "--runs", "3", "--alternatives", "unguarded,A,B", "--latencies", "typical"]


def run(job: dict[str, Any]) -> int:
    _in_this_process(Path(job["out"] + ".begun"))
    if job["command"] == "compare":
        words = [*COMPARE, "--out", job["out"]]
    else:
        study = Path(job["out"] + ".toml")
        study.write_text(STUDY)
        words = ["sweep", str(study), "--out", job["out"]]
    try:
        command_line(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return BROKEN


def _in_this_process(begun: Path) -> None:
    """Have cells of two runs measured in this process, and each run noted as it begins."""
    made = cells.cells_of

    def small(orders: Any, system: Any, *_: Any, **options: Any) -> Any:
        return made(orders, system, 2, **options)

    def alone(*_: Any) -> Workers:
        return Workers(InThisProcess)

    cell_runner.cells_of = sweep_run.cells_of = small  # type: ignore[assignment]
    cell_runner.workers_for = alone
    measure = SimulatedSystem.measure

    def noted(self: SimulatedSystem, order: Any, *args: Any, **options: Any) -> Any:
        with begun.open("a", encoding="utf-8") as file:
            file.write(f"{order.facts.run_id}\n")
        return measure(self, order, *args, **options)

    SimulatedSystem.measure = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    of_comparison = comparison()
    (cell, *_) = cells.cells_of(of_comparison.orders(), simulated(of_comparison, Settings()), 1)
    run_cell(cell)
    serve_jobs(run)
