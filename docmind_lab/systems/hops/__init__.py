"""The workload `hops`: a caller asks a service that asks further services, and some of them adopt the deadline.

workload.py    the caller as a graph of one node, and as a system under a deadline
host.py        the server of all hops: their work, their calls, their reply
processes.py   a process for each level, whose clocks are hours apart
"""

import docmind_lab.systems.hops.host  # noqa: F401 - it adds the server of the hops
