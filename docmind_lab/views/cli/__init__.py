"""`docmind-lab`: the command line. Exit code 0: done, 1: it failed, 2: bad usage, 130: interrupted.

app.py              the application, and how it reports errors
compare.py          the main job; fields_as_options.py its options: the fields of systems and worlds
sweep.py            a designed experiment
studies.py          finished studies: show, recommend, report
traces.py           runs recorded anywhere, and what another deadline would have done
probe.py            whether a server stops when its client leaves
doctor.py           endpoints, versions, settings; the deadline of a user's graph
servers.py          JupyterLab, and the simulated services
console.py          what the commands share; printing.py a study on a terminal

Commands import what they need when they run: the stack takes seconds to import, and --help must not.
"""

import sys

try:
    from docmind_lab.views.cli.app import app, main
except ModuleNotFoundError as error:
    if error.name != "typer":
        raise
    # The core alone enforces deadlines and has no commands.
    sys.exit("docmind-lab: the commands are in the extra lab; run: pip install 'docmind_lab[lab]'")

__all__ = ["app", "main"]
