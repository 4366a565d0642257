"""The main job: the same questions under every alternative.

design.py    what to compare, and the runs that follow
virtual.py   runs in virtual time, cells of them over warm processes
wall.py      runs on the wall clock, against services over sockets
run.py      the job as a whole: runs, study, folder
"""

from docmind_lab.comparison.design import Comparison
from docmind_lab.comparison.run import compare, run_comparison

__all__ = ["Comparison", "compare", "run_comparison"]
