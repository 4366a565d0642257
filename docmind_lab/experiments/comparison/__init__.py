"""The main experiment: the same questions asked under every alternative.

request.py        CompareRequest, the keywords of `compare`
resolve.py        turn a request into a comparison: of a workload, of a user's graph (own_graph.py), of a recording
                  (replays.py)
documents.py      the documents to search, and the questions about them
design.py         what to compare, and the runs that follow
virtual.py        runs in virtual time, cells of them over warm processes
wall.py           runs on the wall clock, against services over sockets
live_estimate.py  estimate the requests and tokens that a live endpoint will get
run.py            `compare`, and a comparison carried out: its runs, study and folder
"""

from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.run import compare, run_comparison

__all__ = ["Comparison", "compare", "run_comparison"]
