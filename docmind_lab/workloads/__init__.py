"""Workloads: the systems that are put under a deadline.

kinds.py         WorkloadKind, and the workloads by name
base.py          base classes of workloads
retries.py       who tries a failed call again, as the column `retries` says it
supervisor.py    DocMind: a supervisor over five roles that answers questions from documents
research, staged, peers, own   four more, each a package
"""

from docmind_lab.analysis.tables.frames import ExtraTable
from docmind_lab.workloads.kinds import WORKLOADS, Surroundings, WorkloadKind, extra_table, systems_said, workload_kind
from docmind_lab.workloads.supervisor import SupervisorWorkload

__all__ = [
    "WORKLOADS",
    "ExtraTable",
    "SupervisorWorkload",
    "Surroundings",
    "WorkloadKind",
    "extra_table",
    "systems_said",
    "workload_kind",
]
