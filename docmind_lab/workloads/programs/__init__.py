"""Programs in any language as systems under a deadline: a process for each run, its question on standard input.

process.py      a process with all that it starts: signals, its end, and nothing left behind
environment.py  variables that lead a program to the simulated services, and keep it from leaving the machine
program.py      a command, and its run: question in, answer out
enforcing.py    the alternatives that a process can have: signals, and its own timeout
kind.py         the command as a workload kind
"""

from docmind_lab.workloads.programs.kind import own_program, program_kind
from docmind_lab.workloads.programs.process import ProcessGroup
from docmind_lab.workloads.programs.program import Program

__all__ = ["ProcessGroup", "Program", "own_program", "program_kind"]
