"""What `import docmind_lab` costs, over `import pydantic_settings`, and what a first question still has to import.

The package is lazy, yet everything slow is imported before a clock starts: making a coordinator imports what
answering needs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.figures import Figure, sampled

TARGET = 1.1
REPEATS = 9
_IMPORT_MS = 50.0
# LangChain puts off a few small modules of its own to the first call; together they take a few milliseconds.
_FIRST_QUESTION_MS = 50.0

_TIMED = "import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
_FIRST_QUESTION = """
import builtins, time
from benchmarks.in_process import ADDRESSES, InProcessServices, in_process
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator
from docmind_lab.core.settings import Settings

settings = Settings(llm={"base_url": ADDRESSES.openai_base_url}, database={"qdrant_url": ADDRESSES.qdrant_url})
depth, importing_s, real_import = 0, 0.0, builtins.__import__

def timed_import(*arguments, **options):
    global depth, importing_s
    depth += 1
    began = time.perf_counter()
    try:
        return real_import(*arguments, **options)
    finally:
        depth -= 1
        if depth == 0:
            importing_s += time.perf_counter() - began

with in_process(InProcessServices()):
    coordinator = MultiAgentCoordinator(settings)
builtins.__import__ = timed_import
response = coordinator.process_query("What does a hard timeout leave running?")
builtins.__import__ = real_import
assert response.metadata["outcome"] == "answered", response.metadata
coordinator.close()
print(importing_s)
"""


def run(repeats: int = REPEATS) -> Iterator[Figure]:
    """The two imports in turn, each in a process of its own, and the imports of a first question."""
    names = ("docmind_lab", "pydantic_settings")
    pairs = [[_seconds(_TIMED.format(module=name)) for name in names] for _ in range(repeats)]
    # The least: whatever else the machine does only adds to it.
    yield Figure("import docmind_lab", 1000 * min(ours_s for ours_s, _ in pairs), "ms", at_most=_IMPORT_MS)
    ratios = [ours_s / theirs_s for ours_s, theirs_s in pairs]
    yield sampled("import docmind_lab / import pydantic_settings", ratios, at_most=TARGET)
    first_question_ms = _seconds(_FIRST_QUESTION) * 1000
    yield Figure("imports inside a first question", first_question_ms, "ms", at_most=_FIRST_QUESTION_MS)


def _seconds(program: str) -> float:
    """What a program prints last, run in a fresh interpreter from here."""
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return float(ended.stdout.split()[-1])
