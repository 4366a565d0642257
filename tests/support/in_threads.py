"""Threads of a test, side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_threads(*functions: Callable[[], object]) -> None:
    """Call each function in a thread of its own, begun in this order, and wait for all of them."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
