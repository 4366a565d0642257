"""Whether a model server stops when its client leaves: calls that are left in each phase, and what the server says.

    probe = probe_server(Target("http://127.0.0.1:8080/v1", "tiny"))
    probe                                   # a line for each phase
    probe.trials                            # a row for each call that was left
    probe.behaviour("my-server")            # what `compare(server_behaviour=...)` plays

The truth is the server's own log or counters. A server without any is judged by how long another request waits for the
slot that the abandoned call may still have; where other requests do not wait, nothing can be told, and nothing is.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import pandas as pd

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.probe.calls import Leaving, ProbeCall, Target
from docmind_lab.experiments.probe.truth import LEAST_GAP_S, Counters, LabLog, Look, truth_of
from docmind_lab.services.behaviour import PHASES, Phase, PhaseBehaviour, ServerBehaviour, WorkEnds

STREAMING: Final = frozenset({"before_first_token", "mid_stream"})

# Where in its phase a call is left, as a share of the phase: the first trial, and how much later each further one.
_LEFT_AT: Final = 0.2
_LEFT_LATER: Final = 0.13
# Work that has ended before half of what was left of it had passed was ended; what lasts longer was not.
_ENDED_BY: Final = 0.5
# A prompt is read in at least so many seconds, if one that is long enough can be sent: shorter than this, a client
# cannot leave in the middle of it.
_PREFILL_S: Final = 0.4
_LONGEST_PROMPT: Final = 2400
_LOOK_EVERY_S: Final = 0.05
# What a server computes for a call besides what its counters have, and what a connection takes.
_ROUNDING_S: Final = 0.03
# How often servers look for clients that have left, which is found out from when their work ends.
_CHECK_PERIODS_S: Final = (1.0, 0.5, 2.0, 5.0)
_CHECK_TOLERANCE_S: Final = 0.08
# Share of trials that must end at such an instant; one may be held up, or counted less than it took.
_CHECKED_SHARE: Final = 0.75
_IDLE_CALLS: Final = 5
_TRIES: Final = 4
_QUIET_LIMIT_S: Final = 120.0
_LIMIT_MS: Final = 500
_TOKEN_LIMIT: Final = 8
# How much faster or slower calls may go after the trials than before, for a trial to be judged by calls before it.
_STEADY: Final = 1.25
_IN_QUEUE_S: Final = 0.15


@dataclass(frozen=True)
class Trial:
    """One call that was left, and what became of the server's work on it. Durations in seconds.

    Args:
        phase: Where the call was.
        how: How the client left.
        repeat: Number of the trial of this phase and way, from 1 on.
        left_after_s: From sending the call to leaving it.
        remaining_s: How much longer the call would have taken, by calls that were not left.
        next_write_s: How much longer until the server would have written to the client.
        low_s: Lower end of the interval that holds the time from leaving to the end of the work.
        high_s: Upper end of it.
        late_tokens: Tokens generated after the client had left; None where nobody counts them.
        evidence: What the interval is from.
        work_ends: What follows from it.
        note: Why nothing follows from it, where that is so.
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

    Args:
        prompt_words: Words of the prompt.
        max_tokens: What calls are limited to.
        tokens: What they generate.
        first_token_s: Until the first token of a streaming call.
        streamed_s: Until the end of its answer.
        whole_s: Until the answer of a call without streaming, to the same prompt and of the same length.
        idle_s: What a call of one token takes on a server that has nothing else to do, several of them.
        waits_s: What such a call takes while another is under way.
    """

    prompt_words: int
    max_tokens: int
    tokens: int
    first_token_s: float
    streamed_s: float
    whole_s: float
    idle_s: tuple[float, ...]
    waits_s: float

    @property
    def others_wait(self) -> bool:
        """Whether another request waits for one that is under way, so that its wait tells when that one ends."""
        return self.waits_s > max(self.idle_s) + _ENDED_BY * (self.streamed_s - self.first_token_s) / 2


@dataclass(frozen=True)
class ServerProbe:
    """What a probe of a server found.

    Args:
        server: What the server is, as far as it says.
        base_url: Where it is.
        undisturbed: Calls that nobody left.
        results: The trials.
        limits: For each limit that a request can ask for, whether the server keeps it.
    """

    server: str
    base_url: str
    undisturbed: Undisturbed
    results: tuple[Trial, ...]
    limits: Mapping[str, str] = field(default_factory=dict)

    @property
    def trials(self) -> pd.DataFrame:
        """A row for each trial; the columns are the fields of `Trial`."""
        return pd.DataFrame([asdict(trial) for trial in self.results])

    def phase(self, phase: Phase) -> PhaseBehaviour:
        """What all trials of a phase say together. They must agree, else nothing is known."""
        all_trials = [trial for trial in self.results if trial.phase == phase]
        trials = [trial for trial in all_trials if trial.how != "FIN, polled"]
        told = [trial for trial in trials if trial.work_ends != "unknown"]
        ends = {trial.work_ends for trial in told}
        if len(ends) != 1:
            return PhaseBehaviour(work_ends="unknown", trials=len(trials), note=_why_unknown(trials, told))
        (work_ends,) = ends
        delays = [(trial.low_s + trial.high_s) / 2 for trial in told]
        tokens = [trial.late_tokens for trial in told if trial.late_tokens is not None]
        return PhaseBehaviour(
            work_ends=work_ends,
            # When a call is dropped from a queue nobody sees: it is only known not to have been worked on.
            delay_s=0.0 if phase == "queue" and work_ends == "at_once" else round(statistics.median(delays), 4),
            low_s=round(min(trial.low_s for trial in told), 4),
            high_s=round(max(trial.high_s for trial in told), 4),
            late_tokens=round(statistics.median(tokens), 1) if tokens else None,
            checks_every_s=check_period_s(told),
            trials=len(told),
            note="; ".join(
                f"while its counters are polled: {trial.work_ends} ({trial.low_s:.2f} to {trial.high_s:.2f} s)"
                for trial in all_trials
                if trial.how == "FIN, polled" and trial.work_ends != work_ends
            ),
            evidence=told[0].evidence,  # type: ignore[arg-type]  # one of the three that trials have
        )

    def behaviour(self, name: str, command: str = "", server: str = "") -> ServerBehaviour:
        """The profile that simulated services play.

        Args:
            name: Of the profile: lower-case letters, digits, ".", "_" and "-".
            command: What repeats the measurement.
            server: The server and its version, where it does not say them itself.
        """
        return ServerBehaviour.of(
            {
                "name": name,
                "server": server or self.server,
                "measured_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "command": command,
                "phases": {phase: self.phase(phase).model_dump() for phase in PHASES},
                "limits": dict(self.limits),
            },
            "of this probe",
        )


def _why_unknown(trials: Sequence[Trial], told: Sequence[Trial]) -> str:
    if told:
        ends = ", ".join(f"{trial.how} {trial.work_ends} ({trial.low_s:.2f} to {trial.high_s:.2f} s)" for trial in told)
        return f"the trials disagree: {ends}"
    return next((trial.note for trial in trials if trial.note), "not tried")


def check_period_s(trials: Sequence[Trial]) -> float | None:
    """How often the server looks for a client that has left; None where its work does not end at such instants.

    Args:
        trials: Of one phase.
    """
    ended = [trial for trial in trials if trial.work_ends == "at_once"]
    if len(ended) < len(trials) or len(ended) < 3 or trials[0].phase == "queue":
        return None
    for period_s in _CHECK_PERIODS_S:
        ends = [(trial.left_after_s + (trial.low_s + trial.high_s) / 2) / period_s for trial in ended]
        # A server that stops at once would be at such an instant by chance only; it is no later than the client left.
        is_late = statistics.median((trial.low_s + trial.high_s) / 2 for trial in ended) > _CHECK_TOLERANCE_S
        on_time = sum(abs(end - round(end)) * period_s <= _CHECK_TOLERANCE_S for end in ends)
        if is_late and on_time >= _CHECKED_SHARE * len(ends):
            return period_s
    return None


def most_to_be_sent(repeats: int, most_tokens: int) -> str:
    """What a probe sends at the most, in words.

    Args:
        repeats: Trials of each phase and way of leaving.
        most_tokens: Limit of the tokens of each answer.
    """
    # Of each phase by FIN and RST, once by the client's timeout; in the queue, and to look at, a second call beside it.
    trials = len(PHASES) * 2 * repeats + 1
    requests = 3 * trials + _IDLE_CALLS + 12
    return f"at most {requests} requests of up to {_LONGEST_PROMPT} words and {most_tokens:,} tokens of answer each"


def probe_server(
    target: Target,
    *,
    repeats: int = 3,
    seconds: float = 3.0,
    most_tokens: int = 2048,
    by_waiting: bool = False,
    progress: Progress | None = None,
) -> ServerProbe:
    """Leave calls to a server in each phase, and see when its work on them ends.

    Args:
        target: The server. Nothing else should use it meanwhile.
        repeats: Trials of each phase and way of leaving.
        seconds: How long an answer should take, about; more makes the intervals smaller beside it.
        most_tokens: Limit of the tokens of each answer.
        by_waiting: Judge by the wait of other requests even where the server keeps count of its work.
        progress: Called with (trials done, all trials).

    Raises: ConfigurationError for numbers that cannot be used; ServiceError when the server cannot be reached, or
    refuses the calls, or when the speed of its calls changed meanwhile, so that they tell nothing of those left.
    """
    if repeats < 1 or not 0 < seconds < math.inf or most_tokens < _TOKEN_LIMIT:
        raise ConfigurationError(
            f"repeats must be 1 or more, seconds above 0 and most_tokens {_TOKEN_LIMIT} or more, not {repeats}, "
            f"{seconds} and {most_tokens}"
        )
    truth = truth_of(target)
    if truth is not None and not isinstance(truth, LabLog):
        # Answers of one length: these servers can be asked not to end by themselves.
        target = replace(target, extra={"ignore_eos": True, **target.extra})
    server = "unknown" if truth is None else truth.server
    truth = None if by_waiting else truth
    bench = _Bench(target, truth)
    undisturbed = bench.measure_undisturbed(seconds, most_tokens)
    ways: list[tuple[Phase, Leaving, int]] = [
        (phase, how, repeat) for phase in PHASES for how in ("FIN", "RST") for repeat in range(1, repeats + 1)
    ]
    ways.append(("generation", "client timeout", 1))
    if truth is not None and not isinstance(truth, LabLog):
        ways.append(("generation", "FIN, polled", 1))
    results = []
    for number, (phase, how, repeat) in enumerate(ways):
        if progress is not None:
            progress(number, len(ways))
        results.append(bench.leave(phase, how, repeat))
    if progress is not None:
        progress(len(ways), len(ways))
    bench.require_steady()
    return ServerProbe(server, target.base_url, undisturbed, tuple(results), bench.limits())


class _Bench:
    """A server under the probe, and what is known of its undisturbed calls."""

    def __init__(self, target: Target, truth: LabLog | Counters | None) -> None:
        self._target, self._truth = target, truth
        self._numbers = itertools.count(1)
        self._run_prefix = f"probe-{time.monotonic_ns():x}"
        self._last_run_id = self._run_prefix
        self._usual: Undisturbed | None = None

    @property
    def usual(self) -> Undisturbed:
        """Calls that nobody left, once they have been measured."""
        assert self._usual is not None, "undisturbed calls are measured first"
        return self._usual

    # ---- calls

    def _call(self, words: int, max_tokens: int, *, stream: bool, **more: Any) -> tuple[str, ProbeCall]:
        number = next(self._numbers)
        run_id = self._last_run_id = f"{self._run_prefix}-{number}"
        # Another beginning each time: what a server has read before it need not read again.
        prompt = " ".join([f"{number} {time.monotonic_ns() % 1_000_003}:", *["go on"] * (words // 2)])
        headers = more.pop("headers", None)
        body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens, "stream": stream, **more}
        return run_id, ProbeCall(self._target, body, run_id, headers)

    def _short_call_s(self) -> float:
        """Seconds that a call of one token takes."""
        _, call = self._call(2, 1, stream=False)
        with call:
            call.answer()
            return time.monotonic() - call.sent_at_s

    def _streamed(self, words: int, max_tokens: int) -> tuple[float, float, int]:
        """First token and end of a streaming call, in seconds, and its tokens."""
        for _ in range(_TRIES):
            _, call = self._call(words, max_tokens, stream=True)
            with call:
                events = list(_instants(call))
            # An answer may be white space, or half a character.
            if events:
                return events[0] - call.sent_at_s, events[-1] - call.sent_at_s, len(events)
        raise ServiceError("streaming calls have no text; the server must answer with text to be probed")

    def measure_undisturbed(self, seconds: float, most_tokens: int) -> Undisturbed:
        """Calls that nobody leaves: how long a prompt must be to be read for a while, and how long answers take."""
        self._short_call_s()
        first_s, end_s, tokens = self._streamed(2, min(64, most_tokens))
        token_s = (end_s - first_s) / max(1, tokens - 1)
        max_tokens = max(_TOKEN_LIMIT, min(most_tokens, math.ceil(seconds / max(token_s, 1e-6))))
        words = 50
        while first_s < _PREFILL_S and words < _LONGEST_PROMPT:
            words = min(_LONGEST_PROMPT, words * (2 if first_s > _PREFILL_S / 2 else 4))
            first_s, _, _ = self._streamed(words, _TOKEN_LIMIT)
        first_s, streamed_s, tokens = self._streamed(words, max_tokens)
        whole_s = self._whole_s(words, max_tokens)
        self._wait_until_quiet()
        idle_s = tuple(self._short_call_s() for _ in range(_IDLE_CALLS))
        _, occupier = self._call(words, max_tokens, stream=True)
        with occupier:
            occupier.read_token()
            waits_s = self._short_call_s()
            while occupier.read_token() is not None:
                pass
        self._usual = Undisturbed(words, max_tokens, tokens, first_s, streamed_s, whole_s, idle_s, waits_s)
        return self._usual

    def _whole_s(self, words: int, max_tokens: int) -> float:
        """Seconds until the answer of a call without streaming."""
        _, call = self._call(words, max_tokens, stream=False)
        with call:
            call.answer()
            return time.monotonic() - call.sent_at_s

    def require_steady(self) -> None:
        """Return if calls take as long as before the trials. Raises: ServiceError when they do not."""
        self._wait_until_quiet()
        now_s = self._whole_s(self.usual.prompt_words, self.usual.max_tokens)
        if not 1 / _STEADY < now_s / self.usual.whole_s < _STEADY:
            raise ServiceError(
                f"a call took {self.usual.whole_s:.2f} s before the trials and {now_s:.2f} s after them, so nothing "
                "can be told from when calls end; probe again while neither the server nor this machine does other work"
            )

    # ---- trials

    def leave(self, phase: Phase, how: Leaving, repeat: int) -> Trial:
        """One trial."""
        before = self._wait_until_quiet()
        usual = self.usual
        if phase in ("prefill", "before_first_token") and usual.first_token_s < _PREFILL_S / 4:
            note = f"the longest prompt is read in {usual.first_token_s:.2f} s, too short to leave in the middle"
            return self._unknown(phase, how, repeat, note)
        if self._truth is None and not usual.others_wait:
            note = "the server keeps no count of its work, and other requests do not wait for a call under way"
            return self._unknown(phase, how, repeat, note)
        if phase == "queue":
            return self._leave_in_queue(how, repeat, before)
        share = _LEFT_AT + _LEFT_LATER * (repeat - 1) % (1 - _LEFT_AT)
        if how == "client timeout":
            return self._leave_by_timeout(repeat, share, before)
        run_id, call = self._call(usual.prompt_words, usual.max_tokens, stream=phase in STREAMING)
        if phase == "mid_stream":
            for _ in range(max(1, int(share * usual.tokens))):
                call.read_token()
        else:
            generating_s = usual.whole_s - usual.first_token_s
            in_phase_s = (
                usual.first_token_s + share * generating_s if phase == "generation" else share * usual.first_token_s
            )
            time.sleep(max(0.0, call.sent_at_s + in_phase_s - time.monotonic()))
        left_at_s = call.leave("FIN" if how == "FIN, polled" else how)
        return self._judge(phase, how, repeat, run_id, call.sent_at_s, left_at_s, before)

    def _leave_by_timeout(self, repeat: int, share: float, before: Look | None) -> Trial:
        """Have the official client leave by its own timeout."""
        # Function-level: it takes a second to import.
        import openai  # noqa: PLC0415

        usual = self.usual
        number = next(self._numbers)
        run_id = f"{self._run_prefix}-{number}"
        prompt = " ".join([f"{number} {time.monotonic_ns() % 1_000_003}:", *["go on"] * (usual.prompt_words // 2)])
        client = openai.OpenAI(
            base_url=self._target.base_url,
            api_key=self._target.api_key or "unused",
            timeout=usual.first_token_s + share * (usual.whole_s - usual.first_token_s),
            max_retries=0,
            default_headers=self._target.headers(run_id),
        )
        sent_at_s = time.monotonic()
        with contextlib.closing(client), contextlib.suppress(openai.APITimeoutError):
            client.chat.completions.create(
                model=self._target.model,
                messages=[{"role": "user", "content": prompt}],
                max_tokens=usual.max_tokens,
                extra_body=dict(self._target.extra),
            )
            return self._unknown("generation", "client timeout", repeat, "the answer was there before the timeout")
        return self._judge("generation", "client timeout", repeat, run_id, sent_at_s, time.monotonic(), before)

    def _leave_in_queue(self, how: Leaving, repeat: int, before: Look | None) -> Trial:
        """Leave a call while others have the slots, and see whether it is worked on when its turn comes."""
        usual = self.usual
        slots = 1 if self._truth is None or isinstance(self._truth, LabLog) else self._truth.slots
        # Without streaming: a server may notice that a client has left only when it has nothing to send to others.
        occupiers = [self._call(usual.prompt_words, usual.max_tokens, stream=False)[1] for _ in range(slots)]
        with contextlib.ExitStack() as closing:
            for occupier in occupiers:
                closing.enter_context(occupier)
            # A server may count its queue only between two steps of its work, and a prompt can be one step.
            time.sleep(usual.first_token_s + _IN_QUEUE_S)
            run_id, call = self._call(2, usual.max_tokens, stream=False)
            time.sleep(_IN_QUEUE_S)
            if not self._is_queued(run_id):
                call.leave("FIN")
                return self._unknown("queue", how, repeat, "no queue was seen: the server took a second call at once")
            left_at_s = call.leave(how)
            used = [occupier.answer().get("usage") or {} for occupier in occupiers]
            free_at_s = time.monotonic()
        left_s, generating_s = free_at_s - left_at_s, usual.whole_s - usual.first_token_s
        tokens: float | None = None
        if isinstance(self._truth, LabLog):
            low_s, high_s, tokens = _by_log(self._truth, run_id, left_at_s, left_s + 3 * generating_s)
            work_ends: WorkEnds = "at_once" if high_s < left_s else "at_its_end"
        elif self._truth is None or before is None:
            low_s, high_s = self._by_waiting(free_at_s)
            work_ends = "at_once" if high_s < _ENDED_BY * generating_s else "unknown"
            work_ends = "at_its_end" if low_s > _ENDED_BY * generating_s else work_ends
            low_s, high_s = (0.0, left_s) if work_ends == "at_once" else (left_s + low_s, left_s + high_s)
        else:
            after = self._look_when_quiet(generating_s)
            tokens = after.tokens - before.tokens - sum(each.get("completion_tokens", 0) for each in used)
            # What was dropped in the queue generates nothing; when it was dropped nobody says.
            work_ends = "at_once" if tokens < 1 else "at_its_end"
            took_s = tokens * generating_s / max(1, usual.max_tokens)
            low_s, high_s = (0.0, left_s) if work_ends == "at_once" else (left_s + 0.9 * took_s, left_s + 1.1 * took_s)
        whole_s = left_s + generating_s
        return Trial(
            "queue",
            how,
            repeat,
            left_at_s - call.sent_at_s,
            whole_s,
            whole_s,
            low_s,
            high_s,
            tokens,
            self._evidence,
            work_ends,
        )

    def _is_queued(self, run_id: str) -> bool:
        if isinstance(self._truth, LabLog):
            return any(row.outcome == "open" and row.queue_wait_s > 0 for row in self._truth.rows(run_id))
        # By waiting, `others_wait` has been seen.
        return self._truth is None or self._truth.look().queued > 0

    @property
    def _evidence(self) -> str:
        if self._truth is None:
            return "wait of another request"
        return "log" if isinstance(self._truth, LabLog) else "counters"

    def _judge(
        self,
        phase: Phase,
        how: Leaving,
        repeat: int,
        run_id: str,
        sent_at_s: float,
        left_at_s: float,
        before: Look | None,
    ) -> Trial:
        usual = self.usual
        left_after_s = left_at_s - sent_at_s
        remaining_s = max(0.0, (usual.streamed_s if phase in STREAMING else usual.whole_s) - left_after_s)
        next_write_s = {"before_first_token": usual.first_token_s - left_after_s, "mid_stream": 0.0}.get(
            phase, remaining_s
        )
        tokens: float | None = None
        if isinstance(self._truth, LabLog):
            low_s, high_s, tokens = _by_log(self._truth, run_id, left_at_s, 3 * remaining_s + 1.0)
        elif self._truth is None or before is None:
            low_s, high_s = self._by_waiting(left_at_s)
        else:
            if how == "FIN, polled":
                self._poll(remaining_s)
            low_s, high_s, tokens = self._by_counters(before, left_after_s, remaining_s)
        work_ends = work_ends_of(phase, low_s, high_s, remaining_s, next_write_s)
        note = "" if work_ends != "unknown" else "the interval holds both a stop and the whole answer"
        note = "the answer was complete before the client left" if math.isinf(high_s) else note
        return Trial(
            phase,
            how,
            repeat,
            left_after_s,
            remaining_s,
            next_write_s,
            low_s,
            high_s,
            tokens,
            self._evidence,
            work_ends,
            note,
        )

    def _unknown(self, phase: Phase, how: Leaving, repeat: int, note: str) -> Trial:
        nan = math.nan
        return Trial(phase, how, repeat, nan, nan, nan, nan, nan, None, "none", "unknown", note)

    # ---- what became of the work

    def _by_waiting(self, from_s: float) -> tuple[float, float]:
        """By the wait of another request: seconds from an instant to the end of the work, as an interval."""
        gap_s = time.monotonic() - from_s
        took_s = self._short_call_s()
        low_s, high_s = took_s - max(self.usual.idle_s), took_s - min(self.usual.idle_s)
        # A wait that is no longer than those of an idle server says that the work may never have gone on.
        low_s = gap_s + low_s if low_s > 0 else 0.0
        return low_s, max(low_s, gap_s + max(0.0, high_s))

    def _by_counters(self, before: Look, left_after_s: float, remaining_s: float) -> tuple[float, float, float]:
        """By what the server has counted for the call: the end of its work as an interval, and its late tokens."""
        after = self._look_when_quiet(remaining_s)
        tokens = after.tokens - before.tokens
        usual = self.usual
        if (
            after.generating_s is None
            or after.prompt_s is None
            or before.generating_s is None
            or before.prompt_s is None
        ):
            prompt_s, generating_s = usual.first_token_s, tokens * (usual.whole_s - usual.first_token_s) / usual.tokens
            error_s = _ROUNDING_S + 0.1 * generating_s
        else:
            prompt_s, generating_s = after.prompt_s - before.prompt_s, after.generating_s - before.generating_s
            error_s = _ROUNDING_S
        if tokens >= usual.max_tokens and prompt_s + generating_s < left_after_s:
            # The answer was complete before the client left: nothing was left to stop.
            return 0.0, math.inf, 0.0
        if tokens < 1:
            # It ended while the prompt was read, which is counted only when it has been read.
            return 0.0, max(0.0, usual.first_token_s - left_after_s) + error_s, 0.0
        end_s = prompt_s + generating_s - left_after_s
        in_time = tokens * min(1.0, max(0.0, left_after_s - prompt_s) / generating_s) if generating_s > 0 else tokens
        return max(0.0, end_s - error_s), max(0.0, end_s + error_s), tokens - in_time

    def _look_when_quiet(self, expected_s: float) -> Look:
        """What the server says when it has nothing more to do. It is not asked before that is expected."""
        time.sleep(1.1 * expected_s + 0.3)
        look = self._wait_until_quiet()
        assert look is not None, "only counters are looked at"
        return look

    def _poll(self, seconds: float) -> None:
        """Read the counters all the time until the server has nothing more to do, or a while longer than it should."""
        assert not isinstance(self._truth, LabLog | None), "only counters are polled"
        until_s = time.monotonic() + 2 * seconds + 1.0
        while self._truth.look().busy and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)

    def _wait_until_quiet(self) -> Look | None:
        """Wait until the server has nothing to do; what its counters say then. Raises: ServiceError after a while."""
        until_s = time.monotonic() + _QUIET_LIMIT_S
        while time.monotonic() < until_s:
            if self._truth is None:
                took_s = self._short_call_s()
                if self._usual is None or took_s <= 2 * max(self._usual.idle_s):
                    return None
            elif isinstance(self._truth, LabLog):
                if not self._truth.rows(self._last_run_id, 1.0) or all(
                    row.outcome != "open" for row in self._truth.rows(self._last_run_id)
                ):
                    return None
            else:
                look = self._truth.look()
                if not look.busy:
                    return look
                time.sleep(LEAST_GAP_S)
        raise ServiceError(
            f"{self._target.base_url} was busy for {_QUIET_LIMIT_S:.0f} s; probe a server that nobody else uses"
        )

    # ---- limits that a request asks for

    def limits(self) -> dict[str, str]:
        """For each limit that a request can ask for, whether the server keeps it."""
        self._wait_until_quiet()
        whole_s = self._whole_s(2, self.usual.max_tokens)
        header = "x-envoy-expected-rq-timeout-ms"
        return {
            "max_tokens": self._token_limit(),
            "t_max_predict_ms": self._time_limit(whole_s, t_max_predict_ms=_LIMIT_MS),
            header: self._time_limit(whole_s, headers={header: str(_LIMIT_MS)}),
        }

    def _token_limit(self) -> str:
        self._wait_until_quiet()
        _, call = self._call(2, _TOKEN_LIMIT, stream=False)
        try:
            with call:
                used = call.answer().get("usage") or {}
        except ServiceError:
            return "refused"
        tokens = used.get("completion_tokens")
        return "unknown" if tokens is None else "honoured" if tokens <= _TOKEN_LIMIT else "ignored"

    def _time_limit(self, whole_s: float, **limit: Any) -> str:
        """Whether a limit of time is kept, by a call that takes `whole_s` seconds without one."""
        self._wait_until_quiet()
        _, call = self._call(2, self.usual.max_tokens, stream=False, **limit)
        try:
            with call:
                call.answer()
                took_s = time.monotonic() - call.sent_at_s
        except ServiceError:
            return "honoured by an error" if time.monotonic() - call.sent_at_s < _ENDED_BY * whole_s else "refused"
        limit_s = _LIMIT_MS / 1000
        if limit_s > _ENDED_BY * whole_s:
            return "unknown"
        return "honoured" if took_s < _STEADY * limit_s + 0.1 else "late" if took_s < whole_s / _STEADY else "ignored"


def work_ends_of(phase: Phase, low_s: float, high_s: float, remaining_s: float, next_write_s: float) -> WorkEnds:
    """When work ended, by the interval that holds its end.

    Args:
        phase: Where the call was left.
        low_s: Lower end of the seconds from leaving to the end of the work.
        high_s: Upper end.
        remaining_s: What was left of the call.
        next_write_s: What was left until the server would have written.
    """
    if phase == "before_first_token" and high_s < next_write_s + _ENDED_BY * (remaining_s - next_write_s):
        return "at_once" if high_s < _ENDED_BY * next_write_s else "at_next_write" if low_s > 0 else "unknown"
    if high_s < _ENDED_BY * remaining_s:
        return "at_once"
    return "at_its_end" if low_s > _ENDED_BY * remaining_s else "unknown"


def _by_log(log: LabLog, run_id: str, from_s: float, limit_s: float) -> tuple[float, float, float]:
    """By the log of the lab's own service, whose clock is this machine's: the end of the work, and its late tokens."""
    rows = log.rows(run_id, wait_quiet_s=limit_s)
    if not rows or any(row.ended_at is None for row in rows):
        return limit_s, math.inf, math.nan
    delay_s = max(0.0, max(row.ended_at for row in rows if row.ended_at is not None) - from_s)
    late = 0.0
    for row in rows:
        for begun_s, ended_s, tokens in row.token_spans:
            late += tokens * min(1.0, max(0.0, ended_s - from_s) / (ended_s - begun_s)) if ended_s > begun_s else 0
    return delay_s, delay_s, late


def _instants(call: ProbeCall) -> Iterator[float]:
    while call.read_token() is not None:
        yield time.monotonic()
