"""Workloads: the systems that are put under a deadline.

kinds.py         WorkloadKind, and the workloads by name
base.py          base classes of workloads
retries.py       who tries a failed call again, as the column `retries` says it
docmind          the system that the lab was made for: a supervisor over five roles
research, staged, peers, hops   four more, each a package
own, agents, programs   a user's own graph, agent or program
"""

from docmind_lab.systems.docmind.supervisor import SupervisorWorkload
from docmind_lab.systems.kinds import WORKLOADS, Surroundings, WorkloadKind, extra_table, systems_said, workload_kind
from docmind_lab.tables.frames import ExtraTable

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
