"""The deadline lint: which alternatives can keep a deadline on a user's graph, and what prevents the others.

trials.py      measured runs of the graph, one at a time
observation.py an alternative that is looked on at: nodes, threads, a loop that stands still
probe.py       what the graph does when nothing limits it
facts.py       of each node: mode, calls, timeouts, retries and their worst case
probing.py     every node probed, and where the deadline is then put
report.py      of each alternative whether it keeps the deadline; the report and its lines
overruns.py    what ate the time of a run that was late
findings.py    what is wrong, the run that shows it, the remedy
run.py         lint_graph
"""

from docmind_lab.experiments.lint.facts import NodeFacts
from docmind_lab.experiments.lint.findings import Evidence, Finding
from docmind_lab.experiments.lint.report import LintReport, Verdict
from docmind_lab.experiments.lint.run import lint_graph

__all__ = ["Evidence", "Finding", "LintReport", "NodeFacts", "Verdict", "lint_graph"]
