"""Ways to enforce a deadline, interchangeable: `run(runnable, inputs, deadline, recorder) -> Outcome`.

controls.py            negative controls: no limit, and a limit that is checked too late
cooperative.py         A   the deadline in the state, a total cap on every call
hard_timeout.py        B   a future that the caller stops waiting for
async_cancellation.py  C   a task that is cancelled
stop_flag.py           D   a flag checked between steps
hybrid.py              E   A in async, with a limit on steps, a drain and a fence behind it
native.py              F   LangGraph's own controls
async_form.py          each in its async form, for a graph that has no sync one
base.py                their shape and outcome; event_loop.py the loop that C, E and F run on
propagation.py         whether the deadline travels with the run: an option of each but the control; and its division
held_tools.py          LangChain's tools in a run that is wrapped up
bound.py               a graph bound to one run; its runtime context and limit of a step
fence.py               keeps an old run out of a thread's checkpoints; passing_saver.py is its base
alternative_texts.py   finds alternatives by their names
"""

import pkgutil
from collections.abc import Iterator, Mapping

from docmind_lab.alternatives.async_cancellation import AsyncCancellation
from docmind_lab.alternatives.base import Alternative, Outcome
from docmind_lab.alternatives.controls import Unguarded
from docmind_lab.alternatives.cooperative import Cooperative
from docmind_lab.alternatives.hard_timeout import HardTimeout
from docmind_lab.alternatives.hybrid import Hybrid
from docmind_lab.alternatives.native import Native
from docmind_lab.alternatives.stop_flag import StopFlag
from docmind_lab.core.alternative_catalogue import CATALOGUE, default_alternatives


class _OfferedAlternatives(Mapping[str, type[Alternative]]):
    """Maps each alternative of the catalogue that is compared by default to its class."""

    def __getitem__(self, name: str) -> type[Alternative]:
        if name not in default_alternatives():
            raise KeyError(name)
        kind: type[Alternative] = pkgutil.resolve_name(CATALOGUE[name].home)
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(default_alternatives())

    def __len__(self) -> int:
        return len(default_alternatives())


ALTERNATIVES: Mapping[str, type[Alternative]] = _OfferedAlternatives()
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
