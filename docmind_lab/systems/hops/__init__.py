"""The workload `hops`: a caller asks a service that asks further services, and some of them adopt the deadline.

hops_workload.py  the caller as a graph of one node, and as a system under a deadline
hops_host.py      the server of all hops: their work, their calls, their reply
processes.py      a process for each level, whose clocks are hours apart
"""

import docmind_lab.systems.hops.hops_host  # noqa: F401 - it adds the server of the hops
