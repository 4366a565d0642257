"""Many runs in virtual time: cells of runs, worker processes that stay warm, one file for each finished cell.

cells.py     a cell: runs that one worker computes and one file holds; how a worker does so
workers.py   executors: processes, or this process; a stalled one is replaced
cell_run.py  compute cells of any kind on workers, and yield results as they come
"""

from docmind_lab.experiments.batch.cell_run import compute_cells
from docmind_lab.experiments.batch.cells import Cell, CellResult, Simulated, run_cell
from docmind_lab.experiments.batch.workers import InThisProcess, Workers, kept_warm, workers_for

__all__ = [
    "Cell",
    "CellResult",
    "InThisProcess",
    "Simulated",
    "Workers",
    "compute_cells",
    "kept_warm",
    "run_cell",
    "workers_for",
]
