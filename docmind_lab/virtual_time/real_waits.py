"""Detects actors that wait in real time, in a call without a virtual replacement.

The watch of a run looks every few milliseconds at the thread that holds the baton. A thread that sleeps at two looks,
and was not scheduled in between, waited throughout. A wait for the interpreter's lock is no such wait, since it is
renewed every few milliseconds; nor is a busy machine, where the thread is ready to run; nor is a disk, for which the
system has another state. What compiled code computes in threads of its own meanwhile is computing, not waiting.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from docmind_lab.virtual_time.kernel import Actor, Kernel
from docmind_lab.virtual_time.real_primitives import real_monotonic
from docmind_lab.virtual_time.reports import is_at_its_gate, is_exempt, place_of

REAL_WAIT_S = 0.05
"""Real seconds of waiting that a run may be seen to spend. A wait that is twice as long is always seen."""

# A share of the process's CPU time above which somebody computes for the thread that waits.
_COMPUTING_SHARE = 0.5
# The interpreter's lock is asked for again after each switch interval; less than some of them prove nothing.
_SWITCH_INTERVALS = 3


@dataclass(frozen=True)
class _Look:
    """One look at the actor that holds the baton. switches: how often it was scheduled; None unless it sleeps."""

    actor: Actor
    hold: int
    switches: int | None
    at_s: float
    cpu_s: float


class RealWaits:
    """Detects actors that wait in real time and reports them to the kernel. Works on Linux only."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._last: _Look | None = None
        self._waited_s = 0.0

    def look(self) -> None:
        """Look at the actor that holds the baton, and report it if it has waited in real time."""
        kernel, last = self._kernel, self._last
        actor, hold = kernel.running, kernel.handovers
        if actor is None or actor.is_outside or kernel.abandoned or sys.platform != "linux":
            self._last = None
            return
        now = _Look(actor, hold, _switches_of(actor.thread.native_id), real_monotonic(), time.process_time())
        self._last = now
        if last is None or (last.actor, last.hold) != (actor, hold):
            return
        if now.switches is None or now.switches != last.switches:
            return
        elapsed_s = now.at_s - last.at_s
        if elapsed_s < _SWITCH_INTERVALS * sys.getswitchinterval():
            return
        if now.cpu_s - last.cpu_s >= _COMPUTING_SHARE * elapsed_s or is_exempt(actor.thread):
            return
        # Who hands the baton over may be kept from a core between choosing the next actor and waking it.
        if is_at_its_gate(actor.thread):
            return
        place = place_of(actor.thread)
        # It may have gone on since, and then the place is another one.
        if kernel.handovers != hold or actor.is_outside:
            return
        self._waited_s += elapsed_s
        if self._waited_s >= REAL_WAIT_S:
            kernel.note_real_wait(actor, place)


def _switches_of(thread_id: int | None) -> int | None:
    """Return how often a sleeping thread has been scheduled; None if it does not sleep or has ended."""
    try:
        with open(f"/proc/self/task/{thread_id}/status", "rb", buffering=0) as file:
            status = file.read(4096)
    except OSError:
        return None
    if b"\nState:\tS" not in status:
        return None
    _, separator, counts = status.partition(b"\nvoluntary_ctxt_switches:")
    if not separator:
        return None
    voluntary, _, rest = counts.partition(b"\n")
    return int(voluntary) + int(rest.partition(b":")[2])
