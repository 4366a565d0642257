"""`python -m docmind_lab.services`: run the simulated services for another program.

Its arguments are modules that add to the services (`services/hosts.py`). It reads `ServiceOptions` as one line of
JSON from standard input, prints the addresses as one line of JSON when it is ready, and ends when standard input
closes, so that it never outlives the program that started it.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.server import ServedOptions, ServiceOptions, serve


def main(read: Callable[[str], ServedOptions] = ServiceOptions.from_json) -> int:
    """Serve until standard input closes. Returns: Exit code 2 for options that cannot be used."""
    for module in sys.argv[1:]:
        importlib.import_module(module)
    try:
        options = read(sys.stdin.readline())
    except ConfigurationError as error:
        print(f"docmind_lab.services: {error}", file=sys.stderr)  # noqa: T201 - the whole interface of this program
        return 2
    threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
    serve(options)
    return 0


def _exit_when_stdin_closes() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
