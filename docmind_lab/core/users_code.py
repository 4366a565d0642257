"""Which line of code that is neither Python's, nor a library's, nor the lab's, a stack or a traceback has come to."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import FrameType

_NOT_THE_USERS = tuple({*map(sysconfig.get_path, ("stdlib", "purelib", "platlib")), str(Path(__file__).parents[1])})


def line_of_error(error: BaseException) -> str:
    """Return "file.py:17" for the innermost line of the user's own code in a traceback; empty if there is none."""
    return _innermost(traceback.extract_tb(error.__traceback__))


def line_at_work(frame: FrameType | None = None) -> str:
    """Return "file.py:17" for the innermost line of the user's own code in a frame, or at work here; else ""."""
    return _innermost(traceback.extract_stack(frame))


def _innermost(frames: traceback.StackSummary) -> str:
    users = [frame for frame in frames if not frame.filename.startswith((*_NOT_THE_USERS, "<"))]
    return f"{Path(users[-1].filename).name}:{users[-1].lineno}" if users else ""
