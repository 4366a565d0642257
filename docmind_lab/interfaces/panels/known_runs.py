"""Runs that have been computed once in virtual time, so that going back to a setting costs nothing."""

from __future__ import annotations

import dataclasses
import pickle
import threading
import zlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.measurement.run import MeasuredRun, RunOrder

# About 10 kB each once packed: every setting of an afternoon, in less memory than one worker has.
MOST_RUNS: Final = 4000
# The first level already takes a run to a tenth of its size, in well under a millisecond.
_LEVEL: Final = 1


class KnownRuns:
    """A bounded store of runs by everything that determines them; the ones longest unused go first.

    A run in virtual time depends on nothing but its order and its system. The names of its study and its own are not
    among that: it comes back under those of the order that asks for it.
    """

    def __init__(self, most: int = MOST_RUNS) -> None:
        self.most = most
        self._packed: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._packed)

    def keep(self, order: RunOrder, system: Simulated, measured: MeasuredRun) -> None:
        """Keep the run that came of an order."""
        packed = zlib.compress(pickle.dumps(measured), _LEVEL)
        with self._lock:
            self._packed[_key(order, system)] = packed
            while len(self._packed) > self.most:
                self._packed.popitem(last=False)

    def find(self, order: RunOrder, system: Simulated) -> MeasuredRun | None:
        """The run that would come of an order, under the order's names; None if it is not known."""
        key = _key(order, system)
        with self._lock:
            packed = self._packed.get(key)
            if packed is None:
                return None
            self._packed.move_to_end(key)
        measured: MeasuredRun = pickle.loads(zlib.decompress(packed))
        return _named(measured, order.facts.study_id, order.facts.run_id)


def _key(order: RunOrder, system: Simulated) -> Hashable:
    nameless = dataclasses.replace(order, facts=dataclasses.replace(order.facts, study_id="", run_id=""))
    return nameless, system


def _named(measured: MeasuredRun, study_id: str, run_id: str) -> MeasuredRun:
    """The run under other names; at once under its own."""
    if (measured.run.study_id, measured.run.run_id) == (study_id, run_id):
        return measured
    names = {"study_id": study_id, "run_id": run_id}
    return dataclasses.replace(
        measured,
        run=dataclasses.replace(measured.run, **names),  # type: ignore[arg-type]
        calls=tuple(dataclasses.replace(call, **names) for call in measured.calls),  # type: ignore[arg-type]
        events=tuple(dataclasses.replace(event, **names) for event in measured.events),  # type: ignore[arg-type]
    )
