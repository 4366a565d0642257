"""Ways to enforce a deadline, interchangeable: `run(runnable, inputs, deadline, recorder) -> Outcome`.

unguarded.py            the negative control
cooperative.py          A   the deadline in the state, a total cap on every call
hard_timeout.py         B   a future that the caller stops waiting for
async_cancellation.py   C   a task that is cancelled
stop_flag.py            D   a flag looked at between steps
hybrid.py               E   A in async, with a limit on steps, a drain and a fence behind it
native.py               F   LangGraph's own controls
base.py                 their shape and outcome; event_loop.py the loop that C, E and F run on
propagation.py          whether the deadline travels with the run: an option of each but the control
fake_timeout.py         a negative control: enforces nothing, and says that it does
names.py                alternatives by what people call them
"""

from types import MappingProxyType

from docmind_lab.alternatives.async_cancellation import AsyncCancellation
from docmind_lab.alternatives.base import Alternative, Outcome
from docmind_lab.alternatives.cooperative import Cooperative
from docmind_lab.alternatives.hard_timeout import HardTimeout
from docmind_lab.alternatives.hybrid import Hybrid
from docmind_lab.alternatives.native import Native
from docmind_lab.alternatives.stop_flag import StopFlag
from docmind_lab.alternatives.unguarded import Unguarded

_IN_ORDER: tuple[type[Alternative], ...] = (
    Unguarded,
    Cooperative,
    HardTimeout,
    AsyncCancellation,
    StopFlag,
    Hybrid,
    Native,
)

ALTERNATIVES = MappingProxyType({kind.name: kind for kind in _IN_ORDER})
"""Level in the tables → class, in the order of the reports."""

__all__ = [
    "ALTERNATIVES",
    "Alternative",
    "AsyncCancellation",
    "Cooperative",
    "HardTimeout",
    "Hybrid",
    "Native",
    "Outcome",
    "StopFlag",
    "Unguarded",
]
