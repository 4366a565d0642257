"""One run of a user's graph that is examined: linted, or cut at an instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

KILL: Final = "kill"
"""Stands where an alternative stands, for a process that is killed."""

# A node's name may have a plus sign.
_AND: Final = " + "


@dataclass(frozen=True)
class Trial:
    """One run to measure.

    alternative: as `parse_alternatives` takes it, or `KILL`. decision_timeout_s: instant of the deadline or of the
    kill, in virtual seconds; infinite for a run that is not cut. fault: what strikes its requests; several are joined
    by " + ". awaited: whether its caller is on the event loop that the graph runs on; else as `compare` has it.
    schedule: draws another order of threads and tasks that are ready; None for first come, first served. is_control:
    whether time and latencies are others, which tells what of an answer depends on them.
    """

    alternative: str
    decision_timeout_s: float
    question_id: str
    fault: str = "none"
    awaited: bool = False
    schedule: int | None = None
    is_control: bool = False

    @property
    def called(self) -> str:
        """The alternative, and how it is called if not as `compare` calls it."""
        return f"{self.alternative} awaited (ainvoke)" if self.awaited else self.alternative

    @property
    def faults(self) -> list[str]:
        """The faults, one by one."""
        return [] if self.fault == "none" else self.fault.split(_AND)

    @property
    def is_cut(self) -> bool:
        """Whether a deadline or a kill ends it."""
        return math.isfinite(self.decision_timeout_s)

    @property
    def is_kill(self) -> bool:
        """Whether the process is killed, and no deadline ends the run."""
        return self.alternative == KILL
