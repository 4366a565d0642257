"""Systems under a deadline.

supervisor.py    DocMind: a supervisor over five roles that answers questions from documents
"""

from docmind_lab.workloads.supervisor import SupervisorWorkload

__all__ = ["SupervisorWorkload"]
