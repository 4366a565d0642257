"""The hops: services that call further services, three levels deep, some of which hold to the caller's deadline.

behaviour.py   how long a hop works and whether it has adopted the deadline, drawn by key
host.py        the server of all hops: their work, their calls, their reply
processes.py   a process for each level, whose clocks are hours apart
"""

from docmind_lab.services.hops.behaviour import (
    HOPS_PATH,
    LEVELS,
    HopBehaviour,
    calls_below,
    checked_adoption,
    role_of,
)

__all__ = ["HOPS_PATH", "LEVELS", "HopBehaviour", "calls_below", "checked_adoption", "role_of"]
