"""`docmind-lab`: the command line. Exit code 0: done, 1: it failed, 2: bad usage, 130: interrupted.

compare.py   the main job
show.py      what happened in one run, as a timeline in the terminal
ask.py       one question to the coordinator
index.py     a folder of documents
doctor.py    endpoints, versions, settings
serve.py     the simulated services
console.py   what the commands share: the console, a progress bar

Commands import what they need when they run: the stack takes seconds to import, and --help must not.
"""

from docmind_lab.interfaces.cli.app import app, main

__all__ = ["app", "main"]
