"""The crash test: cut a user's graph at every point at which a deadline can fall, and judge what is left behind.

journal.py      what happened in one trial, and whether its process lives
probes.py       a watched checkpointer, store, services, callbacks, temporary files
opened_saver.py the checkpointer of one trial, opened anew after a kill
held_locks.py   the locks that a graph's code can reach
observation.py  a trial, and what it showed
bench.py        the graph and its services, for one trial after the other
saved_thread.py a thread as its checkpointer has it, and a copy of it
trial.py        one trial: run, cut or kill, come to rest, go on
cut_points.py   the instants at which an undisturbed run can be cut, and which are tried
invariants/     the verdicts on a trial
cells.py        trials over worker processes
shrink.py       the smallest trial that shows a finding
findings.py     a finding, its timeline, its test
report.py       the report and its lines
run.py          crash_test
"""

from docmind_lab.experiments.crash_test.findings import Finding
from docmind_lab.experiments.crash_test.report import CrashReport
from docmind_lab.experiments.crash_test.run import crash_test

__all__ = ["CrashReport", "Finding", "crash_test"]
