"""What `import docmind_lab` costs, over `import pydantic_settings`."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

REPEATS = 9


def run() -> Iterator[str]:
    """The two imports in turn, each in a process of its own; the median of the pairwise ratios."""
    ratios = []
    for _ in range(REPEATS):
        ours, theirs = _seconds("docmind_lab"), _seconds("pydantic_settings")
        ratios.append(ours / theirs)
    yield f"import docmind_lab / import pydantic_settings: {statistics.median(ratios):.2f} (target ≤ 1.1)"


def _seconds(module: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - started
