"""The main job: the same questions under every alternative.

keywords.py  compare: what it can be told, and the study that comes of it
asked.py     what it was told
asking.py    from there to a comparison: of a workload, of a user's graph (own.py), of a recording (replays.py)
design.py    what to compare, and the runs that follow
virtual.py   runs in virtual time, cells of them over warm processes
wall.py      runs on the wall clock, against services over sockets
sending.py   what a live endpoint is expected to be sent
run.py       the comparison carried out: runs, study, folder
"""

from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.keywords import compare
from docmind_lab.experiments.comparison.run import run_comparison

__all__ = ["Comparison", "compare", "run_comparison"]
