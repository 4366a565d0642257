"""Programs in any language as systems under a deadline: a process for each run, its question on standard input.

program.py       a command, the variables that lead it to the simulated services, and its run: question in, answer out
program_kind.py  the command as a workload kind, with the alternatives that a process can have
"""

from docmind_lab.systems.own.programs.program import ProcessGroup, Program
from docmind_lab.systems.own.programs.program_kind import own_program, program_kind

__all__ = ["ProcessGroup", "Program", "own_program", "program_kind"]
