"""Surveys of what others' software does at a deadline. They are no part of the package; their rows are in data/.

cases/           agents of other frameworks as small programs
case_files.py    their descriptions and environments
case_process.py  one of them as a process
agent_services.py a model, a tool and one thing that takes long, for agents of any framework
agents.py        all of them run, and judged by the log of the services
agent_table.py   a row for each run, with its mark
matrix.py        page and figure of the rows
client_timeouts.py how long clients wait by default for a server that hangs, trickles or is not there
gateways.py      calls that are left half way through a gateway in front of the lab's own service
"""
