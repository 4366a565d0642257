"""The deadline lint: which alternatives can keep a deadline on a user's graph, and what prevents the others.

doctor_bench.py     measured runs of the graph, one at a time
scenes.py           run the graph and observe it: visits of nodes, work in threads, a blocked event loop
facts.py            facts about each node: mode, calls, timeouts, retries, worst case
probing.py          probe every node, and choose where to put the deadline
late_runs.py        where a late run lost its time
findings.py         problems at nodes, the runs that show each, the remedy
doctor_report.py    whether each alternative keeps the deadline; the report
doctor_run.py       doctor
limits_in_force.py  what limits a request, by its client and by the graph around it
timeouts.py         timeouts: what the limits of a graph come to, by design and as measured
"""

from docmind_lab.experiments.doctor.doctor_report import LintReport, Verdict
from docmind_lab.experiments.doctor.doctor_run import doctor
from docmind_lab.experiments.doctor.facts import NodeFacts
from docmind_lab.experiments.doctor.findings import Evidence, Problem

__all__ = ["Evidence", "LintReport", "NodeFacts", "Problem", "Verdict", "doctor"]
