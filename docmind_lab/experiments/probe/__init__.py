"""Does it stop? Calls that are left half way and agents whose timeout fires, and what goes on of them.

calls.py    one call over a connection of its own, which can be left at any instant
truth.py    what a server says of its own work: a log, or counters
server.py   calls left in each phase, and what follows of the server

cases.py         agents of other frameworks as small programs, and their environments
agents.py        those programs run, and judged by the log of the services
agent_table.py   a row for each run, with its mark
"""

from docmind_lab.experiments.probe.calls import ProbeCall, Target
from docmind_lab.experiments.probe.server import ServerProbe, Trial, Undisturbed, most_to_be_sent, probe_server
from docmind_lab.experiments.probe.truth import first_model

__all__ = [
    "ProbeCall",
    "ServerProbe",
    "Target",
    "Trial",
    "Undisturbed",
    "first_model",
    "most_to_be_sent",
    "probe_server",
]
