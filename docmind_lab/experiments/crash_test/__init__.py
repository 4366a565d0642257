"""The crash test: cut a user's graph at every point at which a deadline can fall, and judge what is left behind.

observation.py  what one trial shows: its marks, its ends, its thread, its leftovers
probes.py       a watched checkpointer, store, services, callbacks, temporary files
checkpointers.py the checkpointer of one trial, opened anew after a kill, and a thread as it has it
held_locks.py    the locks that a graph's code can reach
crash_bench.py   the graph and its services, for one trial after the other
trial.py         one trial: run, cut or kill, come to rest, go on
cut_points.py    the instants at which an undisturbed run can be cut, and which are tried
invariants.py    the judgements on a trial
crash_report.py  a violation with its timeline and its test, and the report
crash_run.py     crash_test
"""

from docmind_lab.experiments.crash_test.crash_report import CrashReport, Violation
from docmind_lab.experiments.crash_test.crash_run import crash_test

__all__ = ["CrashReport", "Violation", "crash_test"]
