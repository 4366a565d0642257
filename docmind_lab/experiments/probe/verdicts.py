"""What follows from calls that were left: a trial for each, and the behaviour of the server in each phase.

probe = probe_server(Target("http://127.0.0.1:8080/v1", "tiny"))
probe.trials                            # a row for each call that was left
probe.behaviour("my-server")            # what `World(server=...)` plays
"""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import pandas as pd

from docmind_lab.core.server_behaviour import PHASES, Phase, PhaseBehaviour, ServerBehaviour, WorkEnds
from docmind_lab.experiments.probe.truth import Leaving
from docmind_lab.findings.finding import Block, Finding, MakesFinding

STREAMING: Final = frozenset({"before_first_token", "mid_stream"})
# Work that has ended before half of what was left of it had passed was ended; what lasts longer was not.
ENDED_BY: Final = 0.5
# How often servers look for clients that have left, which is found out from when their work ends.
_CHECK_PERIODS_S: Final = (1.0, 0.5, 2.0, 5.0)
_CHECK_TOLERANCE_S: Final = 0.08
# Share of trials that must end at such an instant; one may be held up, or counted less than it took.
_CHECKED_SHARE: Final = 0.75


@dataclass(frozen=True)
class Trial:
    """One call that was left, and what became of the server's work on it. Durations in seconds.

    how: how the client left. repeat: number of the trial of this phase and way, from 1 on. left_after_s: from sending
    the call to leaving it. remaining_s: how much longer the call would have taken, by calls that were not left.
    next_write_s: how much longer until the server would have written to the client. low_s: lower end of the interval
    that holds the time from leaving to the end of the work. high_s: upper end of it. late_tokens: tokens generated
    after the client had left; None where nobody counts them. evidence: what the interval is from. work_ends: what
    follows from it. note: why nothing follows from it, where that is so.
    """

    phase: Phase
    how: Leaving
    repeat: int
    left_after_s: float
    remaining_s: float
    next_write_s: float
    low_s: float
    high_s: float
    late_tokens: float | None
    evidence: str
    work_ends: WorkEnds
    note: str = ""


@dataclass(frozen=True)
class Undisturbed:
    """How calls go that nobody leaves. Durations in seconds.

    prompt_words: words of the prompt. max_tokens: what calls are limited to. tokens: what they generate. first_token_s:
    until the first token of a streaming call; where streams are held back, until an answer of one token without
    streaming. streamed_s: until the end of its answer. whole_s: until the answer of a call without streaming, to the
    same prompt and of the same length. idle_s: what a call of one token takes on a server that has nothing else to do,
    several of them. waits_s: what such a call takes while another is under way. held_back: whether streams are held
    back until their end, as by a gateway that buffers them.
    """

    prompt_words: int
    max_tokens: int
    tokens: int
    first_token_s: float
    streamed_s: float
    whole_s: float
    idle_s: tuple[float, ...]
    waits_s: float
    held_back: bool = False

    @property
    def others_wait(self) -> bool:
        """Whether another request waits for one that is under way, so that its wait tells when that one ends."""
        return self.waits_s > max(self.idle_s) + ENDED_BY * (self.streamed_s - self.first_token_s) / 2


_IN_WORDS: Final[Mapping[WorkEnds, str]] = {
    "at_once": "stops",
    "at_next_write": "stops when it next writes",
    "at_its_end": "goes on to its end",
    "unknown": "cannot be told",
}


@dataclass(frozen=True, repr=False)
class ServerProbe(MakesFinding):
    """What a probe of a server found."""

    server: str
    base_url: str
    undisturbed: Undisturbed
    results: tuple[Trial, ...]

    @property
    def trials(self) -> pd.DataFrame:
        """A row for each trial; the columns are the fields of `Trial`."""
        return pd.DataFrame([asdict(trial) for trial in self.results])

    def phase(self, phase: Phase) -> PhaseBehaviour:
        """What all trials of a phase say together. They must agree, else nothing is known."""
        all_trials = [trial for trial in self.results if trial.phase == phase]
        trials = [trial for trial in all_trials if trial.how != "FIN, polled"]
        conclusive = self._conclusive(phase)
        ends = {trial.work_ends for trial in conclusive}
        if len(ends) != 1:
            return PhaseBehaviour(work_ends="unknown", trials=len(trials), note=_why_unknown(trials, conclusive))
        (work_ends,) = ends
        delays = [(trial.low_s + trial.high_s) / 2 for trial in conclusive]
        tokens = [trial.late_tokens for trial in conclusive if trial.late_tokens is not None]
        return PhaseBehaviour(
            work_ends=work_ends,
            # When a call is dropped from a queue nobody sees: it is only known not to have been worked on.
            delay_s=0.0 if phase == "queue" and work_ends == "at_once" else round(statistics.median(delays), 4),
            low_s=round(min(trial.low_s for trial in conclusive), 4),
            high_s=round(max(trial.high_s for trial in conclusive), 4),
            late_tokens=round(statistics.median(tokens), 1) if tokens else None,
            checks_every_s=check_period_s(conclusive, *(self._conclusive(each) for each in PHASES if each != phase)),
            trials=len(conclusive),
            note="; ".join(
                f"while its counters are polled: {trial.work_ends} ({trial.low_s:.2f} to {trial.high_s:.2f} s)"
                for trial in all_trials
                if trial.how == "FIN, polled" and trial.work_ends != work_ends
            ),
            evidence=conclusive[0].evidence,  # type: ignore[arg-type]  # one of the three that trials have
        )

    def _conclusive(self, phase: Phase) -> list[Trial]:
        """Return the trials of a phase that say when the work ended."""
        return [
            trial
            for trial in self.results
            if trial.phase == phase and trial.how != "FIN, polled" and trial.work_ends != "unknown"
        ]

    def finding(self) -> Finding:
        """Return a row for each phase, why some are not known, and what tells all of it."""
        behaviours = {phase.replace("_", " "): self.phase(phase) for phase in PHASES}
        rows = [
            {
                "where its call is": phase,
                "the work": _IN_WORDS[behaviour.work_ends],
                "after": _after(behaviour),
                "late tokens": "" if behaviour.late_tokens is None else f"{behaviour.late_tokens:,.0f}",
                "trials": behaviour.trials,
            }
            for phase, behaviour in behaviours.items()
        ]
        notes = [f"{phase}: {behaviour.note}." for phase, behaviour in behaviours.items() if behaviour.note]
        evidence = sorted({trial.evidence for trial in self.results if trial.evidence != "none"})
        source = f"Told by: {', '.join(evidence) or 'nothing'}."
        words: list[Block] = [f"{self.server}: a client leaves", pd.DataFrame(rows), *notes, source]
        return Finding(tuple(words), {"server": self.server}, {"trials": self.trials})

    def behaviour(self, name: str, command: str = "") -> ServerBehaviour:
        """The profile that simulated services play. command: what repeats the measurement."""
        return ServerBehaviour.of(
            {
                "name": name,
                "server": self.server,
                "measured_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "command": command,
                "phases": {phase: self.phase(phase).model_dump() for phase in PHASES},
            },
            "of this probe",
        )


def _after(behaviour: PhaseBehaviour) -> str:
    if behaviour.delay_s is None:
        return ""
    if behaviour.checks_every_s is not None:
        return f"its next look, every {behaviour.checks_every_s:g} s"
    if behaviour.low_s is not None and behaviour.high_s is not None and behaviour.high_s - behaviour.low_s > 0.1:
        return f"{behaviour.low_s:.2f} to {behaviour.high_s:.2f} s"
    return f"{behaviour.delay_s:.2f} s"


def _why_unknown(trials: Sequence[Trial], conclusive: Sequence[Trial]) -> str:
    if conclusive:
        ends = ", ".join(
            f"{trial.how} {trial.work_ends} ({trial.low_s:.2f} to {trial.high_s:.2f} s)" for trial in conclusive
        )
        return f"the trials disagree: {ends}"
    return next((trial.note for trial in trials if trial.note), "not tried")


def check_period_s(trials: Sequence[Trial], *of_other_phases: Sequence[Trial]) -> float | None:
    """How often the server looks for a client that has left; None where its work does not end at such instants.

    One instant alone is none of a period: at the end of the prompt, a server may end all calls that were left in it.
    """
    period_s, instants = _looks(trials)
    for period_there_s, instants_there in map(_looks, of_other_phases):
        instants |= instants_there if period_there_s == period_s else set()
    return period_s if len(instants) > 1 else None


def _looks(trials: Sequence[Trial]) -> tuple[float | None, set[int]]:
    """Return a period at whose instants the work of a phase ended, and which of them; None where there is none."""
    ended = [trial for trial in trials if trial.work_ends == "at_once"]
    if len(ended) < len(trials) or len(ended) < 3 or trials[0].phase == "queue":
        return None, set()
    for period_s in _CHECK_PERIODS_S:
        ends = [(trial.left_after_s + (trial.low_s + trial.high_s) / 2) / period_s for trial in ended]
        # A server that stops at once would be at such an instant by chance only; it is no later than the client left.
        is_late = statistics.median((trial.low_s + trial.high_s) / 2 for trial in ended) > _CHECK_TOLERANCE_S
        on_time = [round(end) for end in ends if abs(end - round(end)) * period_s <= _CHECK_TOLERANCE_S]
        if is_late and len(on_time) >= _CHECKED_SHARE * len(ends):
            return period_s, set(on_time)
    return None, set()


def work_ends_of(phase: Phase, low_s: float, high_s: float, remaining_s: float, next_write_s: float) -> WorkEnds:
    """When work ended, by the interval that holds its end.

    low_s: lower end of the seconds from leaving to the end of the work. high_s: upper end. remaining_s: what was left
    of the call. next_write_s: what was left until the server would have written.
    """
    if phase == "before_first_token" and high_s < next_write_s + ENDED_BY * (remaining_s - next_write_s):
        return "at_once" if high_s < ENDED_BY * next_write_s else "at_next_write" if low_s > 0 else "unknown"
    if high_s < ENDED_BY * remaining_s:
        return "at_once"
    return "at_its_end" if low_s > ENDED_BY * remaining_s else "unknown"


def why_unknown(high_s: float, remaining_s: float) -> str:
    """Why nothing can be told, by the upper end of the interval and what was left of the call, as `work_ends_of`."""
    if math.isinf(high_s):
        return "the answer was complete before the client left"
    other = "the next write" if high_s < ENDED_BY * remaining_s else "the whole answer"
    return f"the interval holds both a stop and {other}"
