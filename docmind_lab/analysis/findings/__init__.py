"""Findings from the tables of a study beyond its summary, as frames and sentences.

choice.py            which arms of one condition to choose; criteria.py has the measures, advice.py says it
recommendation.py    the smallest decision timeout that keeps a promise; recommendation_words.py says it
endings.py           runs that failed, were interrupted or were ended by a budget, which no timeout changes
contrasts.py         every arm against one, seed by seed
controls.py          negative controls: who enforces nothing is caught, who is the same is not told apart
decision_tables.py   decision tables as their records print them, and whether they add up
weights.py           which option wins under which weights
measured_perf.py     Perf measured: its components, and the map to a score
scorecard.py         ADR-056's table with measured Perf; scorecard_frames.py its frames, scorecard_words.py its words
"""

from docmind_lab.analysis.findings.contrasts import contrasts
from docmind_lab.analysis.findings.controls import aa, enforcement
from docmind_lab.analysis.findings.decision_tables import DecisionTable, decision_table
from docmind_lab.analysis.findings.measured_perf import PerfMap
from docmind_lab.analysis.findings.recommendation import Recommendation, recommend
from docmind_lab.analysis.findings.scorecard import Scorecard, scorecard
from docmind_lab.analysis.findings.weights import one_at_a_time

__all__ = [
    "DecisionTable",
    "PerfMap",
    "Recommendation",
    "Scorecard",
    "aa",
    "contrasts",
    "decision_table",
    "enforcement",
    "one_at_a_time",
    "recommend",
    "scorecard",
]
