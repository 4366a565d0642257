"""The deadline lint: which alternatives can keep a deadline on a user's graph, and what prevents the others.

lint_bench.py   measured runs of the graph, one at a time
scenes.py       run the graph and observe it: visits of nodes, work in threads, a blocked event loop
facts.py        facts about each node: mode, calls, timeouts, retries, worst case
probing.py      probe every node, and choose where to put the deadline
late_runs.py    where a late run lost its time
findings.py     problems at nodes, the runs that show each, the remedy
lint_report.py  whether each alternative keeps the deadline; the report
lint_run.py     doctor
"""

from docmind_lab.experiments.lint.facts import NodeFacts
from docmind_lab.experiments.lint.findings import Evidence, Problem
from docmind_lab.experiments.lint.lint_report import LintReport, Verdict
from docmind_lab.experiments.lint.lint_run import doctor

__all__ = ["Evidence", "LintReport", "NodeFacts", "Problem", "Verdict", "doctor"]
