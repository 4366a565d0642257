"""The main experiment: the same questions asked under every alternative.

request.py        what is asked: the one description of a comparison
resolve.py        from a request to a comparison: of a workload, of a user's graph (own_graph.py), of a recording
                  (replays.py)
documents.py      what is searched, and the questions that are put to it
design.py         what to compare, and the runs that follow
virtual.py        runs in virtual time, cells of them over warm processes
wall.py           runs on the wall clock, against services over sockets
live_estimate.py  what a live endpoint is expected to be sent
run.py            `compare`, which makes a request of its keywords; its runs, study and folder
"""

from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.run import compare, run_comparison

__all__ = ["Comparison", "compare", "run_comparison"]
