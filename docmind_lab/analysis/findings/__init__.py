"""Findings from the tables of a study beyond its summary, as frames and sentences.

choice.py            which arms of one condition to choose; criteria.py has the measures, advice.py says it
recommendation.py    the smallest decision timeout that keeps a promise; recommendation_words.py says it
endings.py           runs that failed, were interrupted or were ended by a budget, which no timeout changes
contrasts.py         every arm against one, seed by seed
controls.py          negative controls: who enforces nothing is caught
decision_tables.py   decision tables as their records print them: sums, and who wins under which weights
perf.py              Perf measured: its components, and the map to a score
scorecard.py         ADR-056's table with measured Perf, and its words
"""

from docmind_lab.analysis.findings.contrasts import contrasts
from docmind_lab.analysis.findings.controls import enforcement
from docmind_lab.analysis.findings.decision_tables import DecisionTable, decision_table
from docmind_lab.analysis.findings.perf import PerfMap
from docmind_lab.analysis.findings.recommendation import Recommendation, recommend
from docmind_lab.analysis.findings.scorecard import Scorecard, scorecard

__all__ = [
    "DecisionTable",
    "PerfMap",
    "Recommendation",
    "Scorecard",
    "contrasts",
    "decision_table",
    "enforcement",
    "recommend",
    "scorecard",
]
