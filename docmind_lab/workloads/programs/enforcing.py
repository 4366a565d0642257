"""The alternatives that a program can have: SIGKILL (B), SIGTERM (C), and its own timeout (F)."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from docmind_lab.alternatives import ALTERNATIVES, Alternative
from docmind_lab.alternatives.base import AroundAlternative, Outcome, RunLog, options_json
from docmind_lab.core.catalogue import letter_of
from docmind_lab.core.deadlines import Deadline
from docmind_lab.workloads.programs.program import (
    ROLE,
    TIMEOUT_VARIABLE,
    TIMEOUT_WORD,
    Program,
    ProgramRun,
    RunningProgram,
)

# Alternative → the signal at the deadline, and the stop reason of a run that it ends.
_SIGNALS: Mapping[str, tuple[signal.Signals, str]] = MappingProxyType(
    {
        "hard_timeout": (signal.SIGKILL, "hard_timeout"),
        "async_cancellation": (signal.SIGTERM, "cancelled"),
    }
)
_OWN_TIMEOUT = "native"
_NO_LIMIT = "unguarded"
# As the program `timeout` of GNU coreutils has it.
_TIMED_OUT_CODE = 124
_LEAST_S = 0.001

SIGNALS_IN_WORDS = "B is SIGKILL and C is SIGTERM, to the process group at the deadline."


def refusal_of(program: Program, alternative: Alternative, *, by_name: bool = False) -> str:
    """Return why a program cannot have an alternative, with the remedy; empty if it can."""
    if alternative.propagates:
        return "a deadline does not travel into another process; use a signal (B, C) or the program's own timeout (F)"
    if alternative.name == "stop_flag":
        return "a program has no steps between which a flag could be looked at; use async_cancellation (C), a SIGTERM"
    if alternative.name not in (*_SIGNALS, _OWN_TIMEOUT, _NO_LIMIT) or options_json(alternative) != "{}":
        return "a program is ended by a signal or by its own timeout; use B, C or F"
    if alternative.name == _OWN_TIMEOUT and not (by_name or program.has_timeout):
        return f"the command has no {TIMEOUT_WORD}; put it where its timeout belongs, or name F for {TIMEOUT_VARIABLE}"
    return ""


def notes_on(program: Program) -> tuple[str, ...]:
    """Return sentences on what the alternatives are to a program, and on those that it cannot have."""
    own = f"F is its own timeout: {TIMEOUT_WORD} in its command, {TIMEOUT_VARIABLE} in its environment."
    refusals = ((kind, refusal_of(program, kind())) for kind in ALTERNATIVES.values())
    return SIGNALS_IN_WORDS, own, *(f"{letter_of(kind.name)} is left out: {why}." for kind, why in refusals if why)


@dataclass(frozen=True)
class OnProgram(AroundAlternative):
    """Runs a program under an alternative.

    A caller that sends SIGTERM waits for the end of the process, as long as that takes. What the process has started,
    and what goes on in its group, is work of the run until the run is over, and then killed.
    """

    def run(self, runnable: ProgramRun, inputs: Mapping[str, Any], deadline: Deadline, recorder: RunLog) -> Outcome:
        """Start the program, wait for it, and signal it at the deadline. Raises: as `ProgramRun.start`."""
        name = self.alternative.name
        has_own = name == _OWN_TIMEOUT
        running = runnable.start(inputs, max(_LEAST_S, deadline.remaining()) if has_own else None)
        number, reason = _SIGNALS.get(name, (None, ""))
        if number is not None and not running.exited.wait(max(0.0, deadline.remaining())):
            recorder.event("stop_requested", ROLE, signal=number.name)
            running.signal(number)
            running.exited.wait()
            return _stopped(running, reason)
        running.exited.wait()
        if running.code == 0 and running.text():
            return Outcome("answered", running.text())
        if has_own and (running.code == _TIMED_OUT_CODE or deadline.passed()):
            return _stopped(running, "node_timeout")
        return Outcome("failed", running.text(), (), "error", running.error_type, running.failure())


def _stopped(running: RunningProgram, reason: str) -> Outcome:
    text = running.text()
    return Outcome("partial" if text else "timed_out", text, stop_reason=reason)
