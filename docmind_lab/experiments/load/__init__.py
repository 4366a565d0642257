"""Load studies: queries arrive at a given rate, whether or not earlier ones are done, at one provider with few slots.

    from docmind_lab.experiments.load import run_load
    study = run_load([0.3, 0.5, 0.7], alternatives="A,B,C", slots=4)

crowd.py         queries side by side in one virtual time or in real time, each a real run of the whole stack
load_design.py   arrival processes, loads × replicates × alternatives, and the crowds that follow
measures.py      goodput, abandoned work, and how long live queries waited because of it
load_study.py    LoadStudy: the tables queries and servings, their summary, their folder
load_run.py      run_load: compute crowds on workers, each of which keeps its system; load_options: a `[load]` table
"""

from docmind_lab.experiments.load.load_design import Arrivals, Constant, LoadDesign, Poisson
from docmind_lab.experiments.load.load_run import load_options, run_load
from docmind_lab.experiments.load.load_study import LoadStudy

__all__ = [
    "Arrivals",
    "Constant",
    "LoadDesign",
    "LoadStudy",
    "Poisson",
    "load_options",
    "run_load",
]
