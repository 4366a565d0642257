"""Does it stop? Calls that are left half way, and what goes on of them.

truth.py         calls that can be left at any instant, and what a server says of its own work: a log, or counters
probe_bench.py   a server under the probe: how its calls go undisturbed, and when the work on one that was left ended
probe_server.py  calls left in each phase
mcp_tools.py     tools of MCP servers, whose callers give up
verdicts.py      what follows from them: the trials, and the behaviour of the server
pressure.py      tasks with and without a line on the time left, at a live model: hurries, ignores, panics
"""

from docmind_lab.experiments.probe.probe_server import most_to_be_sent, probe_server
from docmind_lab.experiments.probe.truth import Target, first_model
from docmind_lab.experiments.probe.verdicts import ServerProbe, Trial, Undisturbed

__all__ = [
    "ServerProbe",
    "Target",
    "Trial",
    "Undisturbed",
    "first_model",
    "most_to_be_sent",
    "probe_server",
]
