"""What the tables of a study show, as frames and sentences. Nothing here runs an agent.

study.py, study_folder.py    the three tables of a study with its manifest, and its folder
summary.py                   a study as a title, a table and sentences; run_timeline.py is one run as lines
agreement.py, diff.py        two clocks, and two studies, against each other
watch.py                     calls in production, and whether they behave as a study said
watchdog.py                  limits of calls that kill few healthy ones, and their code for other libraries
what_if/                     what another deadline would have done to recorded runs
finding.py                   a finding: words, numbers and evidence, as text, Markdown, HTML and JSON

choice.py             which arms of one condition to choose; criteria.py has the measures, choice_words.py says it
recommendation.py     the smallest decision timeout that keeps a promise, and how long final calls take;
                      recommendation_words.py says it
endings.py            runs that failed, were interrupted or were ended by a budget, which no timeout changes
contrasts.py          every arm against one, seed by seed
decision_tables.py    ADR-056's decision table, and what was measured of other people's software
scorecard.py          ADR-056's table with measured Perf, and its words
"""

from docmind_lab.findings.contrasts import contrasts
from docmind_lab.findings.recommendation import Recommendation, final_call_s, recommend
from docmind_lab.findings.scorecard import Scorecard, scorecard

__all__ = [
    "Recommendation",
    "Scorecard",
    "contrasts",
    "final_call_s",
    "recommend",
    "scorecard",
]
