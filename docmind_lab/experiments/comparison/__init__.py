"""The main experiment: the same questions asked under every alternative.

own_graph.py       what applies to a user's own graph
replays.py         the comparison that replays a recording
documents.py       the documents to search, and the questions about them
comparison.py      what to compare, the runs that follow, and the simulated system that they need
wall.py            runs on the wall clock, against services over sockets
cell_runner.py     cells of runs of comparisons and studies, carried out on both clocks
live_estimate.py   estimate the requests and tokens that a live endpoint will get
comparison_run.py  `compare`: a system in a world becomes a comparison, which is carried out: its runs, study and folder
"""

from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.comparison_run import compare, run_comparison

__all__ = ["Comparison", "compare", "run_comparison"]
