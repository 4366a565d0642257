"""The workload `hops`: a caller asks a service that asks further services, and some of them adopt the deadline.

workload.py   the caller as a graph of one node, and as a system under a deadline

The services themselves are in docmind_lab/services/hops.
"""

from docmind_lab.services.hops import LEVELS, role_of
from docmind_lab.services.hops.processes import HopProcesses
from docmind_lab.systems.base.retries import no_retries
from docmind_lab.systems.base.workload_kind import Defaults, WorkloadKind, no_policies
from docmind_lab.systems.hops.workload import HopsWorkload, requests

KIND = WorkloadKind(
    name="hops",
    title="Tree of services, three hops deep",
    asked="requests",
    cases=requests,
    build=HopsWorkload,
    # In each, the budget falls among the run times: with nothing or everything in time there is nothing to compare.
    defaults={"virtual": Defaults(10.0, 40, "heavy_tail/3"), "wall": Defaults(1.0, 8, "heavy_tail/30")},
    roles=tuple(role_of(level) for level in range(1, LEVELS + 1)),
    retries=no_retries,
    reads_settings=True,
    has_hops=True,
    refusal=no_policies,
    serve=HopProcesses,
)
"""A caller that asks a tree of seven services."""

__all__ = ["KIND", "HopsWorkload"]
