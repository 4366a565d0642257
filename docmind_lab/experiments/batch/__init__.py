"""Many runs in virtual time: cells of runs, worker processes that stay warm, one file for each finished cell.

cells.py     what is computed together and stored as one file
worker.py    one cell, in whatever process it is sent to
workers.py   executors: processes, or this process; a stalled one is replaced
runner.py    cells of any kind over workers, results as they come
"""

from docmind_lab.analysis.cell_store import CellStore
from docmind_lab.analysis.tables.frames import Tables
from docmind_lab.experiments.batch.cells import Cell, CellResult, Simulated
from docmind_lab.experiments.batch.runner import Computing, compute_cells, run_cells
from docmind_lab.experiments.batch.workers import Workers, in_this_process, kept_warm, processes, workers_for

__all__ = [
    "Cell",
    "CellResult",
    "CellStore",
    "Computing",
    "Simulated",
    "Tables",
    "Workers",
    "compute_cells",
    "in_this_process",
    "kept_warm",
    "processes",
    "run_cells",
    "workers_for",
]
